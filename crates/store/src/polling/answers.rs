use grid_batch_core::{
    AttemptId, Change, Event, Evidence, LedgerStatus, Resolution, StatusReport, UnresolvedBatch,
};

use super::PendingBatch;
use crate::batch::BatchKey;

/// The change that a ledger's answer makes to the attempt that the query was about.
///
/// Without the query, the answer may be about an attempt of a previous owner of the service. Then
/// only a proof of a commit makes a change.
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
