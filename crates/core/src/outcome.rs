use std::{fmt, time::Duration};

use futures_core::future::BoxFuture;

use crate::{AttemptId, ScopeId, Submission, monitor::BatchResult};

/// How a batch's sending ended, as an adapter reads its ledger's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The ledger took it.
    Accepted,
    /// The ledger said that it has no room now.
    Busy,
    /// It certainly never reached the ledger.
    NotSent,
    /// A gate is closed, such as the one for the gas price: nothing was sent, and there is no fault.
    Parked,
    /// The ledger refused the batch itself, for good.
    Rejected,
    /// The ledger refused the caller or the address, whatever the batch: a matter of configuration.
    Refused,
    /// It may have been accepted: the answer was lost, or none came in time.
    Ambiguous,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Accepted => "accepted",
            Self::Busy => "busy",
            Self::NotSent => "not sent",
            Self::Parked => "parked",
            Self::Rejected => "rejected",
            Self::Refused => "refused",
            Self::Ambiguous => "outcome unknown",
        })
    }
}

/// What came of sending a batch once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionAnswer {
    /// How it ended.
    pub outcome: Outcome,
    /// The HTTP status, where there was an answer.
    pub status: Option<u16>,
    /// The ledger's message, or the error.
    pub message: Option<String>,
    /// How long the ledger asked to be left alone; where the batch is parked, when to look again.
    pub retry_after: Option<Duration>,
}

/// Sends a batch to a ledger, once: an adapter's part of a submission.
///
/// It reads the ledger's answer as an [`Outcome`]. It never sends twice, and its time limit, shorter
/// than the submitter's, is part of it: when it has sent and does not know, it says
/// [`Outcome::Ambiguous`]. It must not block the thread that it is polled on.
pub trait SubmissionSender: Send + Sync {
    /// The scope of the batches.
    type Id: ScopeId;

    /// Sends the batch to the ledger at this address.
    fn send<'a>(
        &'a self,
        url: &'a str,
        submission: &'a Submission<Self::Id>,
    ) -> BoxFuture<'a, SubmissionAnswer>;
}

/// What came of a whole submission: of its last sending, after all that were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionOutcome<S: ScopeId> {
    /// The batch.
    pub batch_header: String,
    /// What it applies to.
    pub scope_id: S,
    /// The submission's attempt id, where it had one.
    pub attempt_id: Option<AttemptId>,
    /// How often it was sent.
    pub attempts: u16,
    /// What came of the last one.
    pub answer: SubmissionAnswer,
}

/// Receives the outcomes of submissions in groups, so that a group can be one commit.
///
/// It stands beside [`SubmitterObserver`](crate::SubmitterObserver), which is told one at a time
/// and cannot say that it failed.
pub trait GroupObserver: Send + Sync {
    /// The scope of the submissions.
    type Id: ScopeId;

    /// Takes note of a group. On an error the whole group is given again.
    fn notify_group(&self, outcomes: &[SubmissionOutcome<Self::Id>]) -> BatchResult<()>;
}
