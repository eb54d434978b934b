//! An operator who reads the record of a ledger.

use std::collections::HashMap;

use grid_batch_core::{Decision, ItemId, StoredBatch};

use crate::{Entry, ExecutionResult};

/// The result of each batch in a record: applied, if any of its entries says so.
pub fn ledger_results(record: &[Entry]) -> HashMap<ItemId, ExecutionResult> {
    let mut results = HashMap::new();
    for entry in record {
        let result = results.entry(entry.batch_id).or_insert(entry.result);
        if entry.result == ExecutionResult::Applied {
            *result = ExecutionResult::Applied;
        }
    }
    results
}

/// What to decide about a held batch that has this result in the record. There is nothing to decide about one that the
/// server knows to be not at the ledger: it is released.
pub fn decision_about(batch: &StoredBatch, result: Option<ExecutionResult>) -> Option<Decision> {
    match result {
        Some(ExecutionResult::Applied) => Some(Decision::Committed),
        Some(ExecutionResult::Invalid) => Some(Decision::Invalid),
        None if batch.progress.state.awaits_queuer() => None,
        None => Some(Decision::Absent),
    }
}
