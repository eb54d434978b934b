use std::collections::HashMap;

use grid_batch_core::MonotonicTime;

/// The batches of one service that are under way, and when the ledger accepted them.
///
/// An acceptance does not name its batch. It is that of the batches that the ledger is then asked about for
/// the first time, so with several of them the time is that of the first.
#[derive(Debug, Default)]
pub(crate) struct BatchesUnderWay {
    /// The first acceptance since the ledger was last asked.
    accepted: Option<MonotonicTime>,
    /// The batches that the ledger was last asked about and that have not ended. `None`: the acceptance was
    /// not seen.
    batches: HashMap<String, Option<MonotonicTime>>,
}

impl BatchesUnderWay {
    /// The ledger has accepted a batch.
    pub(crate) fn accepted(&mut self, now: MonotonicTime) {
        self.accepted.get_or_insert(now);
    }

    /// The ledger is asked about these batches, which are all.
    pub(crate) fn asked_about<'a>(&mut self, batch_ids: impl Iterator<Item = &'a str>) {
        let accepted = self.accepted.take();
        let mut known = std::mem::take(&mut self.batches);
        let with_time = |id: &str| (id.to_owned(), known.remove(id).unwrap_or(accepted));
        self.batches = batch_ids.map(with_time).collect();
    }

    /// The batch is not under way any more. Returns when it was accepted, if that is known.
    pub(crate) fn ended(&mut self, batch_id: &str) -> Option<MonotonicTime> {
        self.batches.remove(batch_id).flatten()
    }

    /// Whether no batch is under way, as far as is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.accepted.is_none() && self.batches.is_empty()
    }
}
