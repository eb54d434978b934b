use std::time::Duration;

use grid_batch_core::{Outcome, ScopeId, Submission, SubmissionOutcome};
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use crate::places::Place;

/// What the leader sends to the runtime. That nothing more comes, the closed channel says.
pub(crate) struct LeaderMessage<S: ScopeId> {
    pub(crate) submission: Submission<S>,
    /// When it was taken from the queue.
    pub(crate) taken_at: Instant,
    pub(crate) place: Place,
}

/// What the listener is sent.
pub(crate) enum TaskMessage<S: ScopeId> {
    /// A submission has begun.
    Begun { batch_header: String, scope_id: S },
    /// It has ended with an answer of the ledger.
    SubmissionResponse(Ended<S>),
    /// It has ended with an error.
    ErrorResponse(Ended<S>),
}

/// A submission that has ended.
pub(crate) struct Ended<S: ScopeId> {
    pub(crate) outcome: SubmissionOutcome<S>,
    /// Since it was taken from the queue.
    pub(crate) elapsed: Duration,
    /// Held until the observers know.
    pub(crate) telling: OwnedSemaphorePermit,
}

impl<S: ScopeId> Ended<S> {
    pub(crate) fn into_message(self) -> TaskMessage<S> {
        // Not every ledger has a status to answer with.
        let answer = &self.outcome.answer;
        let is_answer =
            matches!(answer.outcome, Outcome::Accepted | Outcome::Parked | Outcome::Rejected);
        if answer.status.is_some() || is_answer {
            TaskMessage::SubmissionResponse(self)
        } else {
            TaskMessage::ErrorResponse(self)
        }
    }
}
