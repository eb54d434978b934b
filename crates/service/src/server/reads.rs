//! What is read below `/v1`.

use std::sync::Arc;

use grid_batch_api::ApiBuilder;
use grid_batch_core::SearchLimits;
use grid_batch_store::Store;

use super::ledger_check::LedgerCheck;

/// Serves it from the store, and the ledgers from memory.
pub(super) fn with_reads(
    api: ApiBuilder,
    store: &Arc<Store>,
    check: LedgerCheck,
    search: SearchLimits,
) -> ApiBuilder {
    let outages = check.clone();
    let (ledgers, pauses) = (Arc::clone(store), Arc::clone(store));
    api.with_reads()
        .with_pauses(move |services| Ok(pauses.pauses(services)?))
        .with_outages(move |service| outages.pool().outages_of(service.as_str()))
        .with_search_limits(search)
        .with_ledgers(move || Ok(vec![check.report(ledgers.ledger()?)]))
}
