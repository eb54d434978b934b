use std::{fmt, time::Duration};

use crate::batches::Deadline;
use crate::ledger::AttemptId;
use crate::{BatchResult, ScopeId};

/// The outcome of sending a batch once, as an adapter reads it from the ledger's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The ledger accepted the batch.
    Accepted,
    /// The ledger has applied the batch already, and this is final. It happens to batches that were sent before their
    /// turn, such as withdrawals that were signed ahead.
    Committed,
    /// The ledger is busy and did not accept it.
    Busy,
    /// It certainly did not reach the ledger.
    NotSent,
    /// A gate is closed, such as the one for the gas price. Nothing was sent; this is not a failure.
    Parked,
    /// A gate is closed only for the pool of this withdrawal: withdrawals of other pools may overtake it. Nothing was
    /// sent, and nothing is signed for it.
    PoolParked,
    /// The ledger rejected the batch; trying again would not help.
    Rejected,
    /// The ledger refused the caller or the address, whatever the batch: check the configuration.
    Refused,
    /// The ledger certainly did not accept this batch, because of something about the batch itself, such as its size.
    /// It may accept it later if, for example, a limit of the node is changed. After several such outcomes the batch is
    /// held; a batch with a deadline is held later.
    RefusedBatch,
    /// It was not sent, because it is not proved that the ledger has not applied it before, and the ledger would apply
    /// it again. An operator must decide.
    NotProvedNew,
    /// It may have been accepted: the answer was lost, or none came in time.
    Ambiguous,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Accepted => "accepted",
            Self::Committed => "committed",
            Self::Busy => "busy",
            Self::NotSent => "not sent",
            Self::Parked => "parked",
            Self::PoolParked => "pool parked",
            Self::Rejected => "rejected",
            Self::Refused => "refused",
            Self::RefusedBatch => "batch refused",
            Self::NotProvedNew => "not proved to be new",
            Self::Ambiguous => "outcome unknown",
        })
    }
}

/// The result of sending a batch once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionAnswer {
    /// The outcome.
    pub outcome: Outcome,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The ledger's message, or the error.
    pub message: Option<String>,
    /// How long to wait before the next attempt: what the ledger asked for, or when a gate is checked
    /// again.
    pub retry_after: Option<Duration>,
}

/// What an outcome says about the batch at the ledger, and so whether it may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutcomeClass {
    /// The ledger has the batch.
    Accepted,
    /// The ledger certainly did not get it, or did not take it because it is busy. It may be sent again after a delay.
    NotSent,
    /// The ledger certainly did not take it, and will not before something has changed. It may be sent again.
    Refused,
    /// The ledger found it invalid. Sending it again would not help.
    Rejected,
    /// The ledger may have it. Without evidence that it does not, it must not be sent again: it could be applied twice.
    Ambiguous,
}

impl OutcomeClass {
    /// Whether the batch can be sent again without evidence: the ledger certainly does not have it.
    pub const fn may_be_sent_again(self) -> bool {
        matches!(self, Self::NotSent | Self::Refused)
    }
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 11] = [
        Self::Accepted,
        Self::Committed,
        Self::Busy,
        Self::NotSent,
        Self::Parked,
        Self::PoolParked,
        Self::Rejected,
        Self::Refused,
        Self::RefusedBatch,
        Self::NotProvedNew,
        Self::Ambiguous,
    ];

    /// What it says about the batch at the ledger.
    pub const fn class(self) -> OutcomeClass {
        match self {
            Self::Accepted | Self::Committed => OutcomeClass::Accepted,
            Self::Busy | Self::NotSent | Self::Parked | Self::PoolParked => OutcomeClass::NotSent,
            Self::Refused | Self::RefusedBatch | Self::NotProvedNew => OutcomeClass::Refused,
            Self::Rejected => OutcomeClass::Rejected,
            Self::Ambiguous => OutcomeClass::Ambiguous,
        }
    }

    /// Whether a gate is closed. It decides when the batch is tried again.
    pub const fn is_parked(self) -> bool {
        matches!(self, Self::Parked | Self::PoolParked)
    }
}

impl SubmissionAnswer {
    /// An answer for when the ledger did not respond.
    pub fn without_response(outcome: Outcome, reason: impl fmt::Display) -> Self {
        Self { outcome, status: None, message: Some(reason.to_string()), retry_after: None }
    }

    /// Whether a node may have received the batch, even if it did not accept it. *Busy* without a response means that
    /// the adapter did not send it and waits.
    pub fn may_have_reached_node(&self) -> bool {
        match self.outcome {
            Outcome::NotSent | Outcome::Parked | Outcome::PoolParked => false,
            Outcome::Busy => self.status.is_some(),
            _ => true,
        }
    }
}

/// The result of a whole submission, which is that of the last time the batch was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionOutcome<S: ScopeId> {
    /// The batch.
    pub batch_header: String,
    /// The scope of the batch.
    pub scope_id: S,
    /// The submission's attempt id, if it has one.
    pub attempt_id: Option<AttemptId>,
    /// When the ledger can no longer apply the batch.
    pub deadline: Option<Deadline>,
    /// How often it was sent.
    pub attempts: u16,
    /// The result of the last time.
    pub answer: SubmissionAnswer,
}

/// Receives the outcomes of submissions in groups, so that a group can be one commit.
///
/// It complements the observer of a submitter, which receives one at a time and cannot report a failure.
pub trait GroupObserver: Send + Sync {
    /// The scope of the submissions.
    type Id: ScopeId;

    /// Handles a group. After an error the whole group is delivered again; after
    /// [`BatchError::Locked`](crate::BatchError::Locked) only the outcomes for the services that it names.
    fn notify_group(&self, outcomes: &[SubmissionOutcome<Self::Id>]) -> BatchResult<()>;
}
