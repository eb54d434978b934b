use grid_batch_core::queries::BatchFilter;
use grid_batch_store::Store;

use crate::DemoError;

/// Refuses a database that has batches or is bound to a ledger, unless the ledger has this name, which is
/// unique to the demonstration.
pub(crate) fn refuse_used_database(
    store: &Store,
    own_ledger: Option<&str>,
) -> Result<(), DemoError> {
    let used = |use_before: String| Err(DemoError::UsedDatabase { use_before });
    match store.ledger()? {
        Some(recorded) if own_ledger == Some(&recorded.identity.name) => Ok(()),
        Some(recorded) => used(format!("is bound to a ledger ({})", recorded.identity)),
        None if has_batches(store)? => used("has batches".to_owned()),
        None => Ok(()),
    }
}

/// Each withdrawal has a batch.
fn has_batches(store: &Store) -> Result<bool, DemoError> {
    Ok(!store.list(&BatchFilter::default(), None, 1)?.is_empty())
}
