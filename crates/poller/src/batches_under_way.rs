use std::collections::HashMap;

use grid_batch_core::MonotonicTime;

use crate::{
    commit_times::{PollCause, SeenCommit},
    decision_times::SeenDecision,
};

/// The batches of one service that are under way, and when the ledger accepted them.
///
/// An acceptance does not name its batch. It is that of the batches that the ledger is then asked about for
/// the first time, so with several of them the time is that of the first.
#[derive(Debug, Default)]
pub(crate) struct BatchesUnderWay {
    /// The first acceptance since the ledger was last asked.
    accepted: Option<MonotonicTime>,
    /// The batches that the ledger was last asked about and that have not ended.
    batches: HashMap<String, BatchUnderWay>,
    /// When it was last asked about them, and why.
    asked: Option<(MonotonicTime, PollCause)>,
}

#[derive(Debug, Default, Clone, Copy)]
struct BatchUnderWay {
    /// `None`: the acceptance was not seen.
    accepted: Option<MonotonicTime>,
    /// When the ledger was asked about it before the last time.
    asked_before: Option<MonotonicTime>,
    /// The ledger has said that it is valid.
    is_valid: bool,
}

impl BatchesUnderWay {
    /// The ledger has accepted a batch.
    pub(crate) fn accepted(&mut self, now: MonotonicTime) {
        self.accepted.get_or_insert(now);
    }

    /// The ledger is asked about these batches, which are all.
    pub(crate) fn asked_about<'a>(
        &mut self,
        batch_ids: impl Iterator<Item = &'a str>,
        cause: PollCause,
        now: MonotonicTime,
    ) {
        let accepted = self.accepted.take();
        let asked_before = self.asked.replace((now, cause)).map(|(time, _)| time);
        let mut known = std::mem::take(&mut self.batches);
        let mut are_new = false;
        let batch = |id: &str| match known.remove(id) {
            Some(batch) => (id.to_owned(), BatchUnderWay { asked_before, ..batch }),
            None => {
                are_new = true;
                (id.to_owned(), BatchUnderWay { accepted, ..BatchUnderWay::default() })
            }
        };
        self.batches = batch_ids.map(batch).collect();
        if accepted.is_some() && !are_new {
            // It was a known batch that was accepted again.
            let again = BatchUnderWay { accepted, ..BatchUnderWay::default() };
            self.batches.values_mut().for_each(|batch| *batch = again);
        }
    }

    /// The batch is not under way any more. Returns when it ended, if its acceptance is known.
    pub(crate) fn ended(&mut self, batch_id: &str) -> Option<SeenCommit> {
        let BatchUnderWay { accepted, asked_before, .. } = self.batches.remove(batch_id)?;
        let (accepted, (asked, cause)) = (accepted?, self.asked?);
        Some(SeenCommit {
            pending_until: asked_before.map(|time| time.since(accepted)),
            committed_by: asked.since(accepted),
            cause,
        })
    }

    /// The ledger has said whether the batch is valid. Returns when, the first time, if its acceptance is known.
    pub(crate) fn decided(&mut self, batch_id: &str) -> Option<SeenDecision> {
        let (asked, _) = self.asked?;
        let batch = self.batches.get_mut(batch_id)?;
        let was_valid = std::mem::replace(&mut batch.is_valid, true);
        let accepted = batch.accepted.filter(|_| !was_valid)?;
        let undecided_until = batch.asked_before.map(|time| time.since(accepted));
        Some(SeenDecision { undecided_until, decided_by: asked.since(accepted) })
    }

    /// When the only batch was accepted, if the ledger has not said whether it is valid.
    pub(crate) fn only_undecided(&self) -> Option<MonotonicTime> {
        let mut batches = self.batches.values();
        match (self.accepted, batches.next(), batches.next()) {
            (Some(accepted), None, _) => Some(accepted),
            (None, Some(batch), None) => batch.accepted.filter(|_| !batch.is_valid),
            _ => None,
        }
    }

    /// When the batches were accepted of which that is known.
    pub(crate) fn accepted_at(&self) -> impl Iterator<Item = MonotonicTime> {
        self.batches.values().filter_map(|batch| batch.accepted).chain(self.accepted)
    }

    /// Whether no batch is under way, as far as is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.accepted.is_none() && self.batches.is_empty()
    }
}
