//! What follows when something was recorded of a batch: others are woken, and it is counted.

use grid_batch_core::{BatchState, Change, ChangeOutcome, Clock, Event, ServiceId, SystemClock};
use grid_batch_poller::{EventFollower, PollTrigger};
use grid_batch_queuer::WakeUp;
use log::warn;

use crate::service::counts::Counters;

#[derive(Debug, Clone)]
pub(super) struct Afterwards {
    pub(super) wake_up: WakeUp,
    pub(super) trigger: PollTrigger,
    pub(super) follower: Option<EventFollower>,
    pub(super) counters: Counters,
}

impl Afterwards {
    pub(super) fn follow_up(&self, change: &Change, recorded: ChangeOutcome) {
        let ChangeOutcome::Applied { state, next_waits } = recorded else { return };
        self.counters.count(change.event, state, change.hold.is_some());
        if let Some(reason) = &change.hold {
            warn!(service:% = change.service_id, batch_id:% = change.batch_id, reason = reason;
                "a batch is held, and its service with it");
        }
        let service = || change.service_id.clone();
        let service_id = change.service_id.as_str();
        let of_submitter = matches!(change.event, Event::Outcome { .. } | Event::OwnerLost { .. });
        match state {
            _ if next_waits => self.wake_up.wake(service()),
            BatchState::Absent => self.wake_up.wake(service()),
            BatchState::Delayed => {
                let until = change.retry_at.map(|then| then.since(SystemClock.now()));
                self.wake_up.wake_after(service(), until.unwrap_or_default());
            }
            // An event may have told of it before the answer to the POST came.
            BatchState::Pending if of_submitter => self.trigger.submitted(service_id),
            BatchState::InDoubt if of_submitter => self.trigger.trigger(service_id),
            _ => {}
        }
    }

    /// Batches were stored for these services.
    pub(super) fn stored(&self, services: &[ServiceId]) {
        for service in services {
            self.follow(service);
            self.wake_up.wake(service.clone());
        }
    }

    /// Listens to a service from before its first batch is sent, as far as that can be.
    pub(super) fn follow(&self, service: &ServiceId) {
        if let Some(follower) = &self.follower {
            follower.follow(service.as_str());
        }
    }
}
