use std::time::Duration;

use grid_batch_core::{Moment, ScopeId, Submission, SubmissionOutcome};
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use crate::{SubmissionResponse, slots::SubmissionSlot};

/// Sent by the leader to the runtime. The leader closes the channel when it ends.
pub(crate) struct LeaderMessage<S: ScopeId> {
    pub(crate) submission: Submission<S>,
    /// When the submission was taken from its store, or from the queue if that is not known: its time
    /// limit starts then.
    pub(crate) taken_at: Moment,
    /// When the queue returned it.
    pub(crate) polled_at: Instant,
    pub(crate) slot: SubmissionSlot,
}

/// Sent to the listener.
pub(crate) enum TaskMessage<S: ScopeId> {
    /// A submission was taken from the queue.
    Started { batch_header: String, scope_id: S },
    /// A submission ended with an HTTP response of the ledger.
    SubmissionResponse(SubmissionResponse<S>, EndedSubmission<S>),
    /// A submission ended without an HTTP response.
    ErrorResponse(EndedSubmission<S>),
}

/// A submission that has ended.
pub(crate) struct EndedSubmission<S: ScopeId> {
    pub(crate) outcome: SubmissionOutcome<S>,
    /// The time since the submission was taken from the queue.
    pub(crate) elapsed: Duration,
    /// Held until the observers have the outcome.
    pub(crate) reporting: OwnedSemaphorePermit,
}

impl<S: ScopeId> EndedSubmission<S> {
    pub(crate) fn into_message(self) -> TaskMessage<S> {
        match response(&self.outcome) {
            Some(response) => TaskMessage::SubmissionResponse(response, self),
            None => TaskMessage::ErrorResponse(self),
        }
    }
}

/// The ledger's last HTTP response to a submission, if there was one.
fn response<S: ScopeId>(outcome: &SubmissionOutcome<S>) -> Option<SubmissionResponse<S>> {
    let SubmissionOutcome { batch_header, scope_id, attempts, answer, .. } = outcome;
    let message = answer.message.clone().unwrap_or_default();
    let (batch_header, scope_id) = (batch_header.clone(), scope_id.clone());
    Some(SubmissionResponse::new(batch_header, scope_id, answer.status?, message, *attempts))
}
