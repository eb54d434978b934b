//! The simulated operator, who looks up held batches in the ledger's record.

use grid_batch_core::batches::{ChangeOutcome, Decision, StoredBatch};
use grid_batch_ledger_sim::{LedgerSim, decision_about, ledger_results};
use grid_batch_store::{Store, StoreError};
use log::info;

/// Decides about every held batch as the ledger's record says, and returns how many decisions were
/// recorded.
pub(crate) fn decide_held_batches(store: &Store, ledger: &LedgerSim) -> Result<u64, StoreError> {
    let held = store.held_batches(None, 1_000)?;
    if held.is_empty() {
        return Ok(0);
    }
    let results = ledger_results(&ledger.record());
    let mut decided = 0;
    for batch in held {
        let outcome = match decision_about(&batch, results.get(&batch.batch_id).copied()) {
            Some(decision) => decide(store, &batch, decision)?,
            None => release(store, &batch)?,
        };
        decided += u64::from(matches!(outcome, ChangeOutcome::Applied { .. }));
    }
    Ok(decided)
}

/// Ends the hold of a batch that the server has not sent because it was not proved to be new.
fn release(store: &Store, batch: &StoredBatch) -> Result<ChangeOutcome, StoreError> {
    let reason = Some("the ledger's record does not have it");
    let outcome = store.release_batch(&batch.service_id, &batch.batch_id, reason)?;
    info!(service:% = batch.service_id, batch_id:% = batch.batch_id; "the operator released a held batch");
    Ok(outcome)
}

fn decide(
    store: &Store,
    batch: &StoredBatch,
    decision: Decision,
) -> Result<ChangeOutcome, StoreError> {
    let outcome =
        store.decide(&batch.service_id, &batch.batch_id, batch.progress.attempts, decision)?;
    info!(service:% = batch.service_id, batch_id:% = batch.batch_id, decision:? = decision,
        reason = batch.held.as_ref().map_or("", |hold| hold.reason.as_str());
        "the operator decided about a held batch");
    Ok(outcome)
}
