use std::{collections::HashMap, sync::Arc};

use grid_batch_core::batches::BatchState;
use grid_batch_core::evidence::UnresolvedBatch;
use grid_batch_core::ledger::AttemptId;
use grid_batch_core::{MonotonicTime, Timestamp};

use crate::{Due, PollCause, Sending, ServiceSending};

/// What is known about a service.
#[derive(Debug, Default)]
pub struct ServiceWork {
    /// Its batches that are under way, and those that a view needs for another reason.
    pub batches: HashMap<Arc<str>, Box<BatchWork>>,
    /// When it is polled next. `None`: it is not scheduled.
    pub poll: Option<Poll>,
    /// When the ledger was last asked about its batches, and why.
    pub asked: Option<(MonotonicTime, PollCause)>,
    /// Whether it is to be polled at once.
    pub trigger: Trigger,
    /// When evidence may be searched again for batches that the ledger reports.
    pub reported_not_before: Option<MonotonicTime>,
    /// What is known about it after a restore of the database.
    pub restored: Option<Restored>,
    /// The last question about its next batches.
    pub question: Option<Question>,
    /// When the ledger is to be asked about its next batches.
    pub question_due: Option<Due>,
    /// What is known about sending its batches.
    pub sending: ServiceSending,
}

/// When a service is polled.
#[derive(Debug)]
pub struct Poll {
    /// When its last batch was accepted, or found in the store.
    pub since: MonotonicTime,
    /// The number of requests that failed since the last answer.
    pub failures: u32,
    /// When the last of them failed.
    pub failed: Option<Due>,
    /// Whether the last request has used the budget.
    pub has_used_budget: bool,
    /// When it is polled next.
    pub due: Option<Due>,
}

/// Whether a service is to be polled at once.
#[derive(Debug, Default)]
pub struct Trigger {
    /// Set if it is to be polled at once.
    pub requested: Option<Due>,
    /// Set while its batches are being read from the store: whether a batch of it was submitted meanwhile.
    pub being_read: Option<bool>,
    /// Set if it was triggered although it had no pending batch.
    pub missed: Option<Due>,
}

/// A service in its present epoch, which was raised because the database was restored.
#[derive(Debug)]
pub struct Restored {
    /// The epoch.
    pub epoch: u64,
    /// When it was first seen in this epoch.
    pub first_seen: MonotonicTime,
    /// When it was last seen.
    pub last_seen: MonotonicTime,
}

/// A question about the next batches of a service.
#[derive(Debug)]
pub struct Question {
    /// When its answers become too old to be used.
    pub old_at: Option<Due>,
    /// The number of batches that it was about.
    pub batches: usize,
    /// How many of them the ledger has not accepted yet.
    pub not_accepted: usize,
}

/// What is known about a batch. Each view has a field.
#[derive(Debug, Default)]
pub struct BatchWork {
    /// Set while it is under way.
    pub under_way: Option<UnderWay>,
    /// The search for evidence about it.
    pub search: Option<Box<Search>>,
    /// What is known about sending it.
    pub sending: Sending,
}

/// A batch that is under way.
#[derive(Debug, Default)]
pub struct UnderWay {
    /// Set if it was accepted since the poller last looked.
    pub newly_accepted: Option<Due>,
    /// When the ledger accepted it. `None`: this process did not see it.
    pub accepted: Option<MonotonicTime>,
    /// When the ledger was last asked about it, since its acceptance.
    pub asked: Option<MonotonicTime>,
    /// When the ledger was asked about it before the last time.
    pub asked_before: Option<MonotonicTime>,
    /// Whether the ledger has reported it as valid.
    pub is_valid: bool,
    /// Since when the ledger has not reported it. `None`: the ledger reported it, or was not asked.
    pub not_reported: Option<MonotonicTime>,
    /// When the ledger was first asked about it. `None`: the ledger was not asked, or the batch is held.
    pub since: Option<Due>,
}

impl UnderWay {
    /// Whether the ledger is asked about the batch until it has ended. A batch that is to be sent again is not: it
    /// first waits for its acceptance.
    pub const fn is_awaited(&self) -> bool {
        self.accepted.is_some() || self.asked.is_some()
    }
}

/// The search for evidence about a batch.
#[derive(Debug, Default)]
pub struct Search {
    /// When evidence may be searched again.
    pub not_before: Option<MonotonicTime>,
    /// The same, as long as the ledger reports the batch.
    pub reported_not_before: Option<MonotonicTime>,
    /// When to look, for each reason.
    pub looks: [Option<Due>; 3],
    /// Since when the batch has been in its present attempt and state.
    pub observed: Option<Observed>,
    /// From when no earlier attempt can arrive any more, and the batch as it was read.
    pub earlier: Option<(Option<Due>, UnresolvedBatch)>,
    /// When to search for the last time, and the batch to search.
    pub last_look: Option<(Option<Due>, UnresolvedBatch)>,
    /// Whether a request for evidence about it is queued.
    pub is_queued: bool,
    /// Whether a request for evidence about it was sent.
    pub is_in_flight: bool,
    /// When the search was last changed, or the time until which it is deferred.
    pub last_used: MonotonicTime,
}

/// Why evidence is to be searched at a certain time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// From then on, absence is evidence.
    Absence,
    /// The batch is put on hold then.
    Hold,
    /// The last search asked for another one then.
    Again,
}

/// A batch in its present attempt and state, as it was read from the store.
#[derive(Debug, Clone, Copy)]
pub struct Observed {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The state.
    pub state: BatchState,
    /// When the batch entered its state. It is only compared with the stored time, which changes when the batch enters
    /// the same state again.
    pub since: Timestamp,
    /// Whether the ledger reported the batch as invalid while an earlier attempt of it may still arrive. After that
    /// wait, the ledger's next report decides about the batch, so its time starts anew.
    pub waits_for_earlier: bool,
    /// When it was first seen like this.
    pub first_seen: MonotonicTime,
}

impl Search {
    /// Whether a request for evidence waits or was sent.
    pub const fn is_requested(&self) -> bool {
        self.is_queued || self.is_in_flight
    }

    /// Whether the search has something left to do.
    fn is_pending(&self) -> bool {
        self.is_requested()
            || self.looks.iter().any(Option::is_some)
            || self.earlier.is_some()
            || self.last_look.is_some()
    }

    /// Whether the record must be kept at this time.
    pub(crate) fn is_needed(&self, now: MonotonicTime, keep: std::time::Duration) -> bool {
        self.is_pending() || now.since(self.last_used) < keep
    }
}

impl BatchWork {
    /// Whether a view needs the record.
    pub const fn is_needed(&self) -> bool {
        self.under_way.is_some() || self.search.is_some() || self.sending.is_needed()
    }
}

impl ServiceWork {
    /// Whether a view needs the record.
    pub fn is_needed(&self) -> bool {
        let Trigger { requested, being_read, missed } = &self.trigger;
        !self.batches.is_empty()
            || self.poll.is_some()
            || requested.is_some()
            || being_read.is_some()
            || missed.is_some()
            || self.reported_not_before.is_some()
            || self.restored.is_some()
            || self.question.is_some()
            || self.question_due.is_some()
            || self.sending.is_needed()
    }
}
