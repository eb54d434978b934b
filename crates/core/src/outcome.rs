use std::{fmt, time::Duration};

use crate::{ScopeId, monitor::BatchResult};

/// How one attempt to submit a batch ended, as an adapter reads its ledger's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The ledger took it.
    Accepted,
    /// The ledger said that it has no room now.
    Busy,
    /// It certainly never reached the ledger.
    NotSent,
    /// The ledger refused the batch itself, for good.
    Rejected,
    /// The ledger refused the caller or the address, whatever the batch: a matter of configuration.
    Refused,
    /// Nobody can tell: it may have been accepted.
    Unknown,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Accepted => "accepted",
            Self::Busy => "busy",
            Self::NotSent => "not sent",
            Self::Rejected => "rejected",
            Self::Refused => "refused",
            Self::Unknown => "outcome unknown",
        })
    }
}

/// One submission's outcome, with what the ledger said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionOutcome<S: ScopeId> {
    /// The batch.
    pub batch_header: String,
    /// What it applies to.
    pub scope_id: S,
    /// How the attempt ended.
    pub outcome: Outcome,
    /// The HTTP status, where there was an answer.
    pub status: Option<u16>,
    /// The ledger's message, or the error.
    pub message: Option<String>,
    /// How long the ledger asked to be left alone.
    pub retry_after: Option<Duration>,
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
