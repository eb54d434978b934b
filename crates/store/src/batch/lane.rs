use std::collections::HashMap;

use grid_batch_core::batches::{
    BatchState, Change, Decision, Event, Hold, Progress, Stale, transition,
};
use grid_batch_core::ledger::{AttemptId, Outcome};
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use super::{BatchKey, REFUSED, RESTORED};
use crate::sql::rows::{DelayRow, storable};

/// The locked lanes of a group of batches.
pub(crate) type Lanes = HashMap<BatchKey, Lane>;

/// The effect of an applied change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Applied {
    /// Whether the batch has another state, or something else about it is new.
    pub(super) progressed: bool,
    /// Whether it is held now, but was not, or was held for another reason.
    pub(super) held: bool,
}

/// A lane and the batch in it.
pub(crate) struct Lane {
    pub(super) service_id: ServiceId,
    pub(super) lane: i32,
    pub(super) epoch: u64,
    pub(super) batch_seq: i64,
    pub(super) batch_id: ItemId,
    /// `None`: the batches of its service wait in the order of `created_at`.
    pub(super) position: Option<i64>,
    /// The batch that it waits for, or waited for when it was sent in a list.
    pub(super) blocker_seq: Option<i64>,
    /// Whether its service has several lanes without positions, each with a batch of another pool.
    pub(super) by_pool: bool,
    pub(super) progress: Progress,
    pub(super) submitted_at: Option<i64>,
    pub(super) since: Option<i64>,
    pub(super) checked_at: Option<i64>,
    pub(super) next_try_at: Option<i64>,
    pub(super) delay: DelayRow,
    pub(super) last_error: Option<String>,
    pub(super) held: Option<Hold>,
    pub(super) changed: bool,
}

impl Lane {
    /// A lane in memory for a batch that waits behind another one and was never tried.
    pub(super) fn of_waiting(service_id: ServiceId, batch_id: ItemId, batch_seq: i64) -> Self {
        Self {
            service_id,
            lane: 0,
            epoch: 0,
            batch_seq,
            batch_id,
            position: None,
            blocker_seq: None,
            by_pool: false,
            progress: Progress::NEW,
            submitted_at: None,
            since: None,
            checked_at: None,
            next_try_at: None,
            delay: DelayRow::default(),
            last_error: None,
            held: None,
            changed: false,
        }
    }

    pub(crate) fn key(&self) -> BatchKey {
        (self.service_id.clone(), self.batch_id)
    }

    /// Whether the batch is with the submitter in this attempt and not proved to be committed.
    pub(crate) fn is_with_submitter(&self, AttemptId { attempt, epoch }: AttemptId) -> bool {
        let Progress { state, attempts, commit_proven, .. } = self.progress;
        state == BatchState::Submitting
            && !commit_proven
            && (attempts, self.epoch) == (attempt, epoch)
    }

    /// Applies a change, and returns its effect or why it is stale.
    pub(super) fn apply(&mut self, change: &Change, now: Timestamp) -> Result<Applied, Stale> {
        if let Some(given) = change.epoch
            && given != self.epoch
            && !change.event.is_proof_of_commit()
        {
            return Err(Stale::Epoch { given, present: self.epoch });
        }
        let before = self.progress;
        let held_before = self.held.clone();
        let held_until_decision = self.is_held_until_decision();
        let event = if held_until_decision {
            change.event.while_held_until_decision(before)
        } else {
            change.event
        };
        self.progress = transition(before, event)?;
        self.changed = true;
        if change.event == Event::Taken {
            self.submitted_at = Some(now.as_micros());
        }
        let restored = change.event == Event::DatabaseRestored;
        if self.progress.state != before.state || restored {
            self.since = Some(now.as_micros());
        }
        if self.ends_hold(change.event, before) {
            self.held = None;
        }
        if restored {
            self.submitted_at = self.submitted_at.or(self.since);
        }
        if let Some(reason) = &change.hold {
            self.hold_if_waiting(reason, change.hold_until_decision, now);
        }
        self.next_try_at = match self.progress.state {
            BatchState::Delayed => change.retry_at.map(Timestamp::as_micros),
            _ => None,
        };
        self.count_delay(change.event, now);
        if let Event::Status { .. } | Event::Evidence { .. } = change.event {
            self.checked_at = Some(now.as_micros());
        }
        if self.progress.invalid_reported && !before.invalid_reported {
            self.last_error = Some(storable(&waits_for_earlier(change)).into_owned());
        } else if let Some(error) = change.error.as_ref().filter(|_| !is_reason(change.event)) {
            self.last_error = Some(storable(error).into_owned());
        }
        Ok(Applied {
            progressed: self.progress != before || restored,
            held: self.held.is_some() && self.held != held_before,
        })
    }

    /// Whether an event that was applied to a batch with this previous progress ends its hold.
    fn ends_hold(&self, event: Event, before: Progress) -> bool {
        match event {
            Event::Decided { .. } => true,
            _ if self.is_held_until_decision() => false,
            event => self.progress.state != before.state || event == Event::DatabaseRestored,
        }
    }

    /// Counts an attempt that the ledger certainly did not accept. Any other event, except taking the batch, ends a
    /// series of them.
    fn count_delay(&mut self, event: Event, now: Timestamp) {
        let delay = &mut self.delay;
        match (self.progress.state, event) {
            (BatchState::Delayed, Event::Outcome { outcome, .. }) => {
                delay.not_accepted = delay.not_accepted.saturating_add(1);
                delay.pool_parked = outcome == Outcome::PoolParked;
                delay.delayed_since = delay.delayed_since.or(Some(now.as_micros()));
                delay.set_failed_attempts(delay.failed_attempts().with(outcome));
            }
            (BatchState::Delayed | BatchState::Submitting, _) => {}
            _ => *delay = DelayRow { not_accepted: delay.not_accepted, ..DelayRow::default() },
        }
    }

    /// Ends the delay of a batch, and the hold that began because the ledger refused it, so that it can be taken at
    /// once and is not overtaken. Returns whether anything changed.
    pub(crate) fn end_delay(&mut self) -> bool {
        let refused = self.held_reason().is_some_and(|reason| reason.starts_with(REFUSED));
        let ends = self.progress.state == BatchState::Delayed
            && (refused || (self.held.is_none() && self.next_try_at.is_some()));
        if ends {
            self.held = None;
            self.start_again();
        }
        ends
    }

    /// Makes a delayed batch ready, as after its first delay.
    fn start_again(&mut self) {
        self.next_try_at = None;
        (self.delay.delays, self.delay.refusals) = (0, 0);
        self.delay.pool_parked = false;
        self.changed = true;
    }

    /// Holds a batch that the poller follows or the ledger refuses. The first reason is kept, except that a hold until
    /// a decision replaces one that evidence could end.
    fn hold_if_waiting(&mut self, reason: &str, until_decision: bool, now: Timestamp) {
        let replaces = match &self.held {
            Some(hold) => until_decision && !hold.until_decision,
            None => true,
        };
        let refused = self.progress.state == BatchState::Delayed && until_decision;
        if (self.progress.state.awaits_poller() || refused) && replaces {
            self.held = Some(self.hold(reason, until_decision, now));
        }
    }

    /// Holds an open batch in any state, for this reason, until an operator decides or releases it.
    pub(crate) fn hold_by_operator(&mut self, reason: &str, now: Timestamp) {
        self.held = Some(self.hold(reason, true, now));
        self.changed = true;
    }

    /// Ends the hold. Returns whether there was one.
    pub(crate) fn release(&mut self) -> bool {
        self.start_again();
        self.held.take().is_some()
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }

    /// A hold for this reason. If the batch is in doubt because its database was restored, the hold mentions this as
    /// well.
    fn hold(&self, reason: &str, until_decision: bool, now: Timestamp) -> Hold {
        let reason = match self.last_error.as_deref() {
            Some(RESTORED) => storable(&format!("{reason}; {RESTORED}")).into_owned(),
            _ => storable(reason).into_owned(),
        };
        Hold { since: now, reason, until_decision }
    }

    pub(super) fn dlt_status(&self) -> Option<&'static str> {
        self.progress.state.dlt_status().map(|status| status.as_str())
    }

    pub(super) fn is_held_until_decision(&self) -> bool {
        self.held.as_ref().is_some_and(|hold| hold.until_decision)
    }

    /// Whether a change left the batch held in its lane beside others of its service.
    pub(super) fn is_held_now(&self) -> bool {
        let is_open = !self.progress.state.is_terminal();
        self.changed && is_open && self.held.is_some() && self.position.is_some()
    }

    pub(super) fn held_at(&self) -> Option<i64> {
        self.held.as_ref().map(|hold| hold.since.as_micros())
    }

    pub(super) fn held_reason(&self) -> Option<&str> {
        self.held.as_ref().map(|hold| hold.reason.as_str())
    }
}

/// Whether the text of such a change is an operator's reason. A reason is in the log and is not an error of the batch.
fn is_reason(event: Event) -> bool {
    let decision = match event {
        Event::Decided { decision, .. } => decision,
        _ => return false,
    };
    matches!(decision, Decision::Absent | Decision::Committed)
}

/// Why a batch that the ledger reports as invalid stays open, with the ledger's reason.
fn waits_for_earlier(change: &Change) -> String {
    let receipts = change.receipts.iter().map(|receipt| receipt.error_message.as_str());
    let reason = receipts.chain(change.error.as_deref()).find(|reason| !reason.is_empty());
    let reason = reason.unwrap_or("the ledger gave no reason");
    format!(
        "the ledger finds the batch invalid, which is not final while an earlier attempt may still \
         arrive: {reason}"
    )
}
