//! What is known of the batches that this instance sends. Each view has a field.

use grid_batch_core::{AttemptId, MonotonicTime, Outcome};

use crate::Due;

/// What is known of sending a batch.
#[derive(Debug, Default)]
pub struct Sending {
    /// The attempts that were taken and have not ended; more than one only if the store has taken the batch again
    /// before the end of an attempt was known here.
    pub attempts: Vec<Attempt>,
    /// Its place, or that it lost it.
    pub place: Option<Place>,
    /// It is recorded as being with a submitter, in this attempt, and when it is an orphan.
    pub with_submitter: Option<(AttemptId, Option<Due>)>,
    /// The last of its first attempts that certainly reached no node.
    pub unsent: Option<(u32, Option<Due>)>,
    /// The ledger does not accept it, while it accepts others of its service.
    pub delay: Option<Box<Delay>>,
}

/// What is known of sending the batches of a service.
#[derive(Debug, Default)]
pub struct ServiceSending {
    /// The node that its places are at, if places are those of a node.
    pub node: Option<usize>,
    /// How many places it uses.
    pub places: usize,
    /// Whether it wants more.
    pub wants_more: bool,
    /// Its position among those that wait for a place.
    pub waits: Option<i64>,
    /// It is its turn, until then.
    pub called: Option<Due>,
    /// The ledger does not accept its batches.
    pub delay: Option<Box<Delay>>,
}

/// An attempt that was taken from the store.
#[derive(Debug)]
pub struct Attempt {
    /// The attempt.
    pub attempt_id: AttemptId,
    pub(crate) step: Step,
    pub(crate) taken: Option<Due>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It waits for a slot, or for its node.
    Waiting,
    /// It was sent, or is about to be.
    Sending,
    /// It is not sent, or not sent again.
    CalledBack,
}

/// The place of a batch that is under way.
#[derive(Debug)]
pub struct Place {
    /// Counts the places that were taken.
    pub number: u64,
    /// The attempt; `None` if the batch was found in the store.
    pub attempt: Option<u32>,
    /// How often the window had been lowered when it was taken.
    pub lowered: u64,
    /// Since when it is under way, and whether it is overdue.
    pub since: Option<Due>,
}

/// What the ledger does not accept.
#[derive(Debug)]
pub struct Delay {
    /// The batch that was tried last.
    pub batch_id: String,
    /// Its entry, at the time when an attempt failed first.
    pub since: Option<Due>,
    /// When an attempt failed first.
    pub first_seen: MonotonicTime,
    /// When one failed last.
    pub last_seen: MonotonicTime,
    /// How many failed in a row.
    pub attempts: u64,
    /// The outcome of the last one.
    pub outcome: Outcome,
    /// Its error.
    pub error: String,
    /// Whether a warning was logged.
    pub warned: bool,
}

impl Sending {
    pub(crate) const fn is_needed(&self) -> bool {
        !self.attempts.is_empty()
            || self.place.is_some()
            || self.with_submitter.is_some()
            || self.unsent.is_some()
            || self.delay.is_some()
    }
}

impl ServiceSending {
    /// Whether it has no place and wants none.
    pub const fn has_no_place(&self) -> bool {
        self.places == 0 && !self.wants_more && self.waits.is_none() && self.called.is_none()
    }

    pub(crate) const fn is_needed(&self) -> bool {
        !self.has_no_place() || self.delay.is_some()
    }
}
