//! The queries to the ledger that are in flight, and what their answers change.

use std::{collections::HashMap, sync::Mutex};

use grid_batch_core::Timestamp;
use grid_batch_core::batches::{Change, Event, LedgerStatus, StatusReport};
use grid_batch_core::evidence::{Evidence, Resolution, UnresolvedBatch};
use grid_batch_core::ledger::AttemptId;
use grid_batch_support::lock;

use super::{PendingBatch, due::RecordedStatus};
use crate::batch::BatchKey;

/// The attempts about which queries to the ledger are in flight.
///
/// An answer names its batch but not the attempt. Without the attempt of the query, a long-delayed answer could end a
/// batch that was sent again meanwhile.
#[derive(Default)]
pub(crate) struct InFlightQueries(Mutex<HashMap<BatchKey, Query>>);

#[derive(Clone, Copy)]
struct Query {
    attempt_id: AttemptId,
    recorded: RecordedStatus,
}

impl InFlightQueries {
    /// If there are more queries than this in flight, all are forgotten. Their answers then count only as proof of a
    /// commit.
    const LIMIT: usize = 100_000;

    /// Starts a query for each of these batches. A batch with a query in flight keeps the attempt of the first query
    /// until it is answered.
    pub(crate) fn start(&self, batches: &[PendingBatch]) {
        let mut queries = lock(&self.0);
        if queries.len() + batches.len() > Self::LIMIT {
            queries.clear();
        }
        for batch in batches {
            let attempt_id = AttemptId { attempt: batch.attempt, epoch: batch.epoch };
            let query = Query { attempt_id, recorded: batch.recorded };
            queries.entry(pending_key(batch)).or_insert(query);
        }
    }

    /// The attempt that the query for a batch is about, if a query is in flight.
    pub(crate) fn attempt_id(&self, batch: &BatchKey) -> Option<AttemptId> {
        lock(&self.0).get(batch).map(|query| query.attempt_id)
    }

    /// Whether an answer with this status need not be recorded now, because it changes nothing.
    pub(crate) fn is_recorded(
        &self,
        batch: &BatchKey,
        status: LedgerStatus,
        now: Timestamp,
    ) -> bool {
        lock(&self.0).get(batch).is_some_and(|query| query.recorded.covers(status, now))
    }

    /// Records that the queries for these batches were answered or given up.
    pub(crate) fn finish(&self, batches: impl IntoIterator<Item = BatchKey>) {
        let mut queries = lock(&self.0);
        for batch in batches {
            queries.remove(&batch);
        }
    }
}

pub(crate) fn pending_key(batch: &PendingBatch) -> BatchKey {
    (batch.service_id.clone(), batch.batch_id)
}

/// The change that a ledger's answer makes to the attempt that the query was about.
///
/// If the query is not known, the answer may be about an attempt of a previous owner of the service, and only a proof
/// of a commit makes a change.
pub(super) fn status_change(
    batch: BatchKey,
    report: &StatusReport,
    query: Option<AttemptId>,
) -> Option<Change> {
    let attempt = query.map(|attempt_id| attempt_id.attempt);
    let event = Event::Status { attempt, status: report.status };
    if query.is_none() && !event.is_proof_of_commit() {
        return None;
    }
    let change = Change::new(batch.0, batch.1, event);
    let epoch = query.map(|attempt_id| attempt_id.epoch);
    Some(Change { epoch, receipts: report.receipts.clone(), ..change })
}

/// The change for a batch that the ledger was asked about without a usable answer.
pub(super) fn no_answer(batch: &PendingBatch) -> Change {
    let event = Event::Status { attempt: Some(batch.attempt), status: LedgerStatus::NotReported };
    let change = Change::new(batch.service_id.clone(), batch.batch_id, event);
    Change { epoch: Some(batch.epoch), ..change }
}

/// The change that a resolution makes to the attempt that the evidence is about.
pub(super) fn resolution_change(batch: &UnresolvedBatch, resolution: &Resolution) -> Change {
    let AttemptId { attempt, epoch } = batch.attempt_id;
    let found = |evidence| Event::Evidence { attempt, evidence };
    let (event, error, hold) = match resolution {
        Resolution::Evidence(evidence) => (found(*evidence), None, None),
        Resolution::Invalid(evidence, reason) => (found(*evidence), Some(reason.clone()), None),
        Resolution::EarlierCannotArrive => (Event::EarlierCannotArrive { attempt }, None, None),
        Resolution::Hold(reason) | Resolution::HoldUntilDecision(reason) => {
            (found(Evidence::Inconclusive), None, Some(reason.clone()))
        }
    };
    let hold_until_decision = matches!(resolution, Resolution::HoldUntilDecision(_));
    let change = Change::new(batch.service_id.clone(), batch.batch_id, event);
    Change { epoch: Some(epoch), error, hold, hold_until_decision, ..change }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ItemId;

    use super::*;

    fn batch(number: u8, attempt: u32) -> PendingBatch {
        PendingBatch::new("a::b".parse().unwrap(), ItemId::from_bytes([number; 64]), attempt, 0)
    }

    fn attempt(queries: &InFlightQueries, number: u8) -> Option<u32> {
        let key = pending_key(&batch(number, 0));
        queries.attempt_id(&key).map(|attempt_id| attempt_id.attempt)
    }

    #[test]
    fn first_query_counts_until_it_is_answered() {
        let queries = InFlightQueries::default();
        for number in [1, 2] {
            queries.start(&[batch(1, number)]);
            assert_eq!(attempt(&queries, 1), Some(1));
        }
        queries.finish([pending_key(&batch(1, 1))]);
        assert_eq!(attempt(&queries, 1), None);
        queries.start(&[batch(1, 2)]);
        assert_eq!(attempt(&queries, 1), Some(2));
    }

    #[test]
    fn number_of_queries_is_limited() {
        let queries = InFlightQueries::default();
        queries.start(&[batch(1, 1)]);
        queries.start(&vec![batch(2, 2); InFlightQueries::LIMIT]);
        assert_eq!([1, 2].map(|number| attempt(&queries, number)), [None, Some(2)]);
    }
}
