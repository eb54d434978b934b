use std::collections::HashMap;

use grid_batch_core::HeaderId;
use grid_batch_ledger_sim::{Entry, Verdict};

/// The result of each batch in a ledger's record: applied, if any of its entries says so.
pub(crate) fn ledger_results(record: &[Entry]) -> HashMap<HeaderId, Verdict> {
    let mut results = HashMap::new();
    for entry in record {
        let result = results.entry(entry.batch_id).or_insert(entry.verdict);
        if entry.verdict == Verdict::Applied {
            *result = Verdict::Applied;
        }
    }
    results
}
