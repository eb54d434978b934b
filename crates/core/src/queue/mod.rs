//! Which batch is next, when it is tried again, and why another one waits.

mod admission;
mod backoff;
mod list_size;
mod retry;
mod round;
mod scheduling;
mod strategy;
mod waiting;

pub use admission::Admission;
pub use backoff::Backoff;
pub use list_size::ListSize;
pub use retry::{DelayOptions, FailedAttempts, HoldCause, NextStep, RetryPolicy};
pub use round::{BatchFits, Round, RoundStore, ServiceShare, TakenBatch};
pub use scheduling::{
    AfterInvalid, Scheduling, SchedulingRules, SchedulingRulesError, StrategyKind,
};
#[cfg(feature = "mocks")]
pub use strategy::MockStrategy;
pub use strategy::{
    AnyStrategy, BlockedBy, ByConflict, InLane, InOrder, LaneCounts, Strategy, WaitKind,
};
pub use waiting::{Ahead, Wait};
