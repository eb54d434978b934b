//! What is known about the batches that this instance sends. Each view has a field.

use grid_batch_core::MonotonicTime;
use grid_batch_core::ledger::{AttemptId, Outcome};

use crate::Due;

/// What is known about sending a batch.
#[derive(Debug, Default)]
pub struct Sending {
    /// The attempts that were taken and have not ended. There is more than one only if the batch was taken again from
    /// the store before this process knew that an attempt had ended.
    pub attempts: Vec<Attempt>,
    /// Its place, also after it has lost it.
    pub place: Option<Place>,
    /// The attempt in which the store records it as being with a submitter, and when it becomes an orphan.
    pub with_submitter: Option<(AttemptId, Option<Due>)>,
    /// The number of the latest attempt, as long as neither it nor any earlier attempt reached a node.
    pub unsent: Option<(u32, Option<Due>)>,
    /// Set if the ledger does not accept it, but accepts other batches of its service.
    pub delay: Option<Box<Delay>>,
}

/// What is known about sending the batches of a service.
#[derive(Debug, Default)]
pub struct ServiceSending {
    /// The node at which its places are, if places belong to nodes.
    pub node: Option<usize>,
    /// How many places it uses.
    pub places: usize,
    /// Whether it wants more.
    pub wants_more: bool,
    /// Its position among those that wait for a place.
    pub waits: Option<i64>,
    /// Set while it is its turn: when the turn ends.
    pub called: Option<Due>,
    /// Set if the ledger does not accept its batches.
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
    /// It waits for a slot or for its node.
    Waiting,
    /// It was sent, or is about to be.
    Sending,
    /// It was called back: it is not sent, or not sent again.
    CalledBack,
}

/// The place of a batch that is under way.
#[derive(Debug)]
pub struct Place {
    /// The sequence number of the place.
    pub number: u64,
    /// The attempt; `None` if the batch was found in the store.
    pub attempt: Option<u32>,
    /// How often the window had been lowered when the place was taken.
    pub lowered: u64,
    /// Since when the batch is under way, and whether it is overdue.
    pub since: Option<Due>,
}

/// A batch, or the batches of a service, that the ledger does not accept.
#[derive(Debug)]
pub struct Delay {
    /// The batch that was tried last.
    pub batch_id: String,
    /// The entry of the time when an attempt first failed.
    pub since: Option<Due>,
    /// When an attempt first failed.
    pub first_seen: MonotonicTime,
    /// When an attempt last failed.
    pub last_seen: MonotonicTime,
    /// How many attempts failed in a row.
    pub attempts: u64,
    /// The outcome of the last attempt.
    pub outcome: Outcome,
    /// The error of the last attempt.
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
    /// Whether the service has no place and wants none.
    pub const fn has_no_place(&self) -> bool {
        self.places == 0 && !self.wants_more && self.waits.is_none() && self.called.is_none()
    }

    pub(crate) const fn is_needed(&self) -> bool {
        !self.has_no_place() || self.delay.is_some()
    }
}
