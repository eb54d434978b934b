//! The steps of the model. Any delay may pass between two steps.

use std::fmt;

use crate::state::BatchSet;

/// A step and its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A step of an instance and its claims.
    Claims(ClaimStep, usize),
    /// A step of this batch of a service, from the store to the ledger.
    Submission(SubmissionStep, WorkerId, usize),
    /// A step that brings the result of this batch of a service from the ledger to the store.
    Result(ResultStep, WorkerId, usize),
    /// A step of the ledger.
    Ledger(LedgerStep),
    /// A step of the database.
    Database(DatabaseStep),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claims(step, instance) => write!(f, "instance {instance}: {step:?}"),
            Self::Submission(step, worker, batch) => write!(f, "{worker}, batch {batch}: {step:?}"),
            Self::Result(step, worker, batch) => write!(f, "{worker}, batch {batch}: {step:?}"),
            Self::Ledger(step) => write!(f, "ledger: {step:?}"),
            Self::Database(step) => write!(f, "database: {step:?}"),
        }
    }
}

/// The worker of one instance for one service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerId {
    pub instance: usize,
    pub service: usize,
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instance {}, service {}", self.instance, self.service)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimStep {
    /// The instance renews its lease.
    Renew,
    /// The idle expiry of the lease passes.
    IdleExpiry,
    /// The full expiry of the lease passes.
    FullExpiry,
    /// Another instance removes the lease. The instance notices it, and registers under a new name.
    Reregister,
    /// The instance claims a service.
    Claim(usize),
    /// The instance stops gracefully and releases all claims.
    Release,
    /// The process ends without releasing its claims.
    Crash,
    /// The time of day jumps on the machine of the instance.
    ClockJump(ClockJump),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockJump {
    Forward,
    Back,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmissionStep {
    /// The batch is marked as submitting and passed to the submitter.
    Mark,
    /// The same for a list of batches, of which this is the first. The next steps are about all of them.
    MarkList,
    /// The POST certainly is not sent.
    NotSent,
    /// The POST arrives, and its response comes back.
    Arrive,
    /// The first batch of a list is sent alone, because one behind it was called back or the node has a peer now.
    ArriveAlone,
    /// The same at a node that applies batches later than the others.
    ArriveAtFollower,
    /// The POST arrives, and its response is an error or is lost.
    ArriveUnanswered,
    /// The submitter times out while the POST is delayed in the network.
    GiveUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultStep {
    /// The new owner recovers a batch that an earlier owner was submitting.
    Recover,
    /// The ledger is queried about a batch.
    Query,
    /// The result is recorded in the store.
    Record,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerStep {
    /// A delayed POST arrives.
    DelayedPostArrives(PostAt),
    /// A delayed POST is lost.
    DelayedPostIsLost(PostAt),
    /// An accepted batch is applied.
    Apply(BatchAt),
    /// An accepted batch is found to be invalid.
    FindInvalid(BatchAt),
    /// The time or height passes after which a batch is declared to be never applied.
    Expire(BatchAt),
    /// The ledger restarts and loses what it had only in memory.
    Restart,
    /// The follower applies what the others have applied.
    FollowerCatchesUp(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseStep {
    /// The database is copied: to a backup, or to a standby that gets no more.
    Copy,
    /// The database is replaced by the copy. What was committed since then is lost.
    GoBack,
}

/// The batches of a service that one request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostAt {
    pub service: usize,
    pub batches: BatchSet,
}

/// A batch of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchAt {
    pub service: usize,
    pub batch: usize,
}
