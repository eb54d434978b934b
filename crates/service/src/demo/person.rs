//! The person who looks, and decides what no machine can: whether a held batch was applied.

use grid_batch_core::{ChangeOutcome, Decision, StoredBatch};
use grid_batch_ledger_sim::{ExecutionResult, LedgerSim};
use grid_batch_store::{Store, StoreError};
use log::info;

use crate::demo::verdicts::verdicts;

/// Looks at every held batch once: what the ledger's own record says of it is decided.
pub(super) fn decide_what_is_held(store: &Store, ledger: &LedgerSim) -> Result<u64, StoreError> {
    let held = store.held_batches(None, 1_000)?;
    if held.is_empty() {
        return Ok(0);
    }
    let verdicts = verdicts(&ledger.record());
    let mut decided = 0;
    for batch in held {
        let decision = match verdicts.get(&batch.batch_id) {
            Some(ExecutionResult::Applied) => Decision::Committed,
            Some(ExecutionResult::Invalid) => Decision::Invalid,
            None => Decision::Absent,
        };
        decided += u64::from(decide(store, &batch, decision)?);
    }
    Ok(decided)
}

fn decide(store: &Store, batch: &StoredBatch, decision: Decision) -> Result<bool, StoreError> {
    let decided = store.decide(&batch.service_id, &batch.batch_id, decision)?;
    info!(service:% = batch.service_id, batch_id:% = batch.batch_id, decision:? = decision,
        reason = batch.held.as_ref().map_or("", |held| held.reason.as_str());
        "a person has decided");
    Ok(matches!(decided, ChangeOutcome::Applied { .. }))
}
