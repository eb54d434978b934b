//! Everything that can happen, one step at a time. Between any two steps there may be any delay.

use std::fmt;

/// A step: whose, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// An instance and its claims.
    Claims(ClaimStep, usize),
    /// A batch's way from the store to the ledger.
    Submission(SubmissionStep, Desk),
    /// The way back: what became of a batch, from the ledger to the store.
    Answer(AnswerStep, Desk),
    /// The ledger by itself.
    Ledger(LedgerStep),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claims(step, instance) => write!(f, "instance {instance}: {step:?}"),
            Self::Submission(step, desk) => write!(f, "{desk}: {step:?}"),
            Self::Answer(step, desk) => write!(f, "{desk}: {step:?}"),
            Self::Ledger(step) => write!(f, "ledger: {step:?}"),
        }
    }
}

/// Where an instance does the work of one service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Desk {
    pub instance: usize,
    pub service: usize,
}

impl fmt::Display for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instance {}, service {}", self.instance, self.service)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimStep {
    /// The row's expiries are set anew.
    Renew,
    /// The first expiry passes.
    FirstExpiry,
    /// The second expiry passes.
    SecondExpiry,
    /// Somebody removes the row; the instance learns of it, and begins anew under another name.
    BeginAnew,
    /// A service is taken.
    Take(usize),
    /// A graceful stop: all claims are given up.
    Release,
    /// The process is gone, and its memory with it.
    Crash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmissionStep {
    /// The next batch is marked as with a submitter, and handed to it.
    Mark,
    /// The POST certainly never leaves.
    NotSent,
    /// The POST arrives, and its answer comes back.
    Arrive,
    /// The POST arrives, and its answer is an error or never comes.
    ArriveUnanswered,
    /// The submitter gives up, and the POST is still on its way.
    GiveUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerStep {
    /// The new owner finds a batch with a submitter that is gone.
    Recover,
    /// The ledger is asked what became of a batch.
    Ask,
    /// What the instance learned is written to the store.
    Record,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerStep {
    /// A POST that was given up arrives.
    StrayArrives(BatchAt),
    /// A POST that was given up never arrives.
    StrayIsLost(BatchAt),
    /// An accepted batch is applied.
    Apply(BatchAt),
    /// An accepted batch is found to be invalid.
    Refuse(BatchAt),
    /// The ledger restarts, and forgets what it only had in memory.
    Restart,
}

/// Which batch, of which service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchAt {
    pub service: usize,
    pub batch: usize,
}
