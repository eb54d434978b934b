use std::collections::HashMap;

use grid_batch_core::ItemId;
use grid_batch_ledger_sim::{Entry, ExecutionResult};

/// The result of each batch in a ledger's record: applied, if any of its entries says so.
pub(crate) fn ledger_results(record: &[Entry]) -> HashMap<ItemId, ExecutionResult> {
    let mut results = HashMap::new();
    for entry in record {
        let result = results.entry(entry.batch_id).or_insert(entry.result);
        if entry.result == ExecutionResult::Applied {
            *result = ExecutionResult::Applied;
        }
    }
    results
}
