//! An operator who reads the record of a ledger.

use std::collections::HashMap;

use grid_batch_core::ItemId;
use grid_batch_core::batches::{Decision, StoredBatch};

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

/// The decision about a held batch that has this result in the record. A batch that the server knows not to be at the
/// ledger needs no decision: it is released.
pub fn decision_about(batch: &StoredBatch, result: Option<ExecutionResult>) -> Option<Decision> {
    match result {
        Some(ExecutionResult::Applied) => Some(Decision::Committed),
        Some(ExecutionResult::Invalid) => Some(Decision::Invalid),
        None if batch.progress.state.awaits_queuer() => None,
        None => Some(Decision::Absent),
    }
}
