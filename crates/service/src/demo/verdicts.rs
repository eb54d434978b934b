use std::collections::HashMap;

use grid_batch_core::HeaderId;
use grid_batch_ledger_sim::{Entry, ExecutionResult};

/// What a ledger's record says of each batch: that it was applied, where it says both.
pub(super) fn verdicts(record: &[Entry]) -> HashMap<HeaderId, ExecutionResult> {
    let mut verdicts = HashMap::new();
    for entry in record {
        let known = verdicts.entry(entry.batch_id).or_insert(entry.result);
        if entry.result == ExecutionResult::Applied {
            *known = ExecutionResult::Applied;
        }
    }
    verdicts
}
