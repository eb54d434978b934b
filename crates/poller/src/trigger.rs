use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use grid_batch_core::{BatchState, Recorded, RecordedSubscriber};
use tokio::sync::Notify;

/// Makes a polling monitor poll a service now, even if its batches are not due.
///
/// No trigger is lost: a service that is triggered before the monitor runs is polled when it does,
/// and one that is triggered during a request is polled once more after it. Clones trigger the same
/// monitor, also after it was stopped and started again.
#[derive(Debug, Clone, Default)]
pub struct PollTrigger(Arc<TriggerState>);

#[derive(Debug, Default)]
struct TriggerState {
    services: Mutex<TriggeredServices>,
    wake_up: Notify,
}

#[derive(Debug, Default)]
struct TriggeredServices {
    /// Services to be polled.
    requested: HashSet<String>,
    /// Services whose batches are being read from the store, and whether a batch of the service was
    /// submitted meanwhile.
    being_read: HashMap<String, bool>,
    /// Services that were triggered when they had no pending batch.
    missed: HashSet<String>,
    /// Services of which a batch was accepted since they were last taken.
    accepted: HashSet<String>,
}

/// The greatest number of missed services that are remembered.
const MAX_MISSED: usize = 10_000;

impl PollTrigger {
    /// A trigger, to be given to a [`PollingMonitorBuilder`](crate::PollingMonitorBuilder).
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the monitor poll this service now.
    pub fn trigger(&self, service_id: &str) {
        let mut services = self.services();
        services.missed.remove(service_id);
        if services.requested.contains(service_id) {
            return;
        }
        services.requested.insert(service_id.to_owned());
        self.0.wake_up.notify_one();
    }

    /// Reports that a ledger accepted a batch of this service, and that the store has recorded it. The
    /// service is polled soon.
    ///
    /// An event may arrive before the answer to the submission, when the store has nothing to poll
    /// yet. If that happened, the service is polled now.
    pub fn submitted(&self, service_id: &str) {
        let mut services = self.services();
        if let Some(submitted) = services.being_read.get_mut(service_id) {
            *submitted = true;
        }
        let is_new = services.accepted.insert(service_id.to_owned());
        if services.missed.contains(service_id) {
            drop(services);
            self.trigger(service_id);
        } else if is_new {
            self.0.wake_up.notify_one();
        }
    }

    /// Takes the services of which a batch was accepted.
    pub(crate) fn take_accepted(&self) -> HashSet<String> {
        std::mem::take(&mut self.services().accepted)
    }

    /// Waits for a trigger or an accepted batch.
    pub(crate) async fn woken(&self) {
        self.0.wake_up.notified().await;
    }

    /// Whether services are to be polled.
    pub(crate) fn has_requests(&self) -> bool {
        !self.services().requested.is_empty()
    }

    /// Takes the triggered services that are ready, to read their batches.
    pub(crate) fn take(&self, is_ready: impl Fn(&str) -> bool) -> Vec<String> {
        let mut services = self.services();
        let taken: Vec<String> =
            services.requested.extract_if(|service| is_ready(service)).collect();
        services.being_read.extend(taken.iter().map(|service| (service.clone(), false)));
        taken
    }

    /// Records that the batches of a taken service were read, and whether there were any.
    pub(crate) fn was_read(&self, service_id: &str, found: bool) {
        let mut services = self.services();
        let submitted = services.being_read.remove(service_id).unwrap_or_default();
        if found || services.requested.contains(service_id) {
            return;
        }
        if submitted {
            drop(services);
            return self.trigger(service_id);
        }
        services.remember_missed(service_id);
    }

    /// Puts a taken service back, to be taken again later.
    pub(crate) fn put_back(&self, service_id: String) {
        let mut services = self.services();
        services.being_read.remove(&service_id);
        services.requested.insert(service_id);
    }

    fn services(&self) -> MutexGuard<'_, TriggeredServices> {
        self.0.services.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Polls a service soon after a batch was accepted, and at once if its batches may have ended. A service that was taken
/// over is polled at once, because an earlier trigger found nothing to poll.
impl RecordedSubscriber for PollTrigger {
    fn recorded(&self, entry: Recorded<'_>) {
        match entry {
            Recorded::Change { change, state, .. } if change.event.ends_submission() => match state
            {
                BatchState::Pending => self.submitted(change.service_id.as_str()),
                BatchState::InDoubt => self.trigger(change.service_id.as_str()),
                _ => {}
            },
            Recorded::Resumed(services) => {
                services.iter().for_each(|service_id| self.trigger(service_id.as_str()));
            }
            Recorded::TakenOver(takeover) => {
                takeover.claims.iter().for_each(|claim| self.trigger(claim.service_id.as_str()));
            }
            Recorded::Recovered(orphans) => {
                let services: BTreeSet<_> =
                    orphans.iter().map(|orphan| orphan.service_id.as_str()).collect();
                services.into_iter().for_each(|service_id| self.trigger(service_id));
            }
            _ => {}
        }
    }
}

impl TriggeredServices {
    fn remember_missed(&mut self, service_id: &str) {
        if self.missed.len() >= MAX_MISSED
            && let Some(any) = self.missed.iter().next().cloned()
        {
            self.missed.remove(&any);
        }
        self.missed.insert(service_id.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{
        AttemptId, Change, Claim, Event, Evidence, ItemId, LedgerStatus, Outcome, ServiceId,
        SubmittedBatch, Takeover,
    };

    use super::*;

    fn service(name: &str) -> ServiceId {
        name.parse().unwrap()
    }

    fn take(trigger: &PollTrigger) -> Vec<String> {
        let mut taken = trigger.take(|_| true);
        taken.sort();
        taken
    }

    #[test]
    fn service_is_polled_after_its_submission_ended() {
        let trigger = PollTrigger::new();
        let recorded = |event, state| {
            let change = Change::new(service("a"), ItemId::from_bytes([1; 64]), event);
            trigger.recorded(Recorded::Change { change: &change, state, next_waits: false });
            (trigger.take_accepted().len(), take(&trigger).len())
        };
        let outcome = |outcome| Event::Outcome { attempt: 1, outcome };
        let status = Event::status(LedgerStatus::Pending);
        assert_eq!(recorded(outcome(Outcome::Accepted), BatchState::Pending), (1, 0));
        assert_eq!(recorded(status, BatchState::Pending), (0, 0));
        assert_eq!(recorded(outcome(Outcome::Ambiguous), BatchState::InDoubt), (0, 1));
        assert_eq!(recorded(Event::OwnerLost { attempt: 1 }, BatchState::InDoubt), (0, 1));
        let inconclusive = Event::Evidence { attempt: 1, evidence: Evidence::Inconclusive };
        assert_eq!(recorded(inconclusive, BatchState::InDoubt), (0, 0));
        assert_eq!(recorded(outcome(Outcome::NotSent), BatchState::Delayed), (0, 0));
    }

    #[test]
    fn taken_resumed_and_recovered_services_are_polled() {
        let trigger = PollTrigger::new();
        let claims = ["a", "b"].map(|name| Claim { service_id: service(name), epoch: 1 });
        let in_doubt = vec![(service("a"), ItemId::from_bytes([1; 64]))];
        let takeover = Takeover { claims: claims.into(), in_doubt };
        trigger.recorded(Recorded::TakenOver(&takeover));
        assert_eq!(take(&trigger), ["a", "b"]);
        trigger.recorded(Recorded::Resumed(&[service("c")]));
        assert_eq!(take(&trigger), ["c"]);
        let orphan = |number| SubmittedBatch {
            service_id: service("d"),
            batch_id: ItemId::from_bytes([number; 64]),
            attempt_id: AttemptId { attempt: 1, epoch: 1 },
        };
        trigger.recorded(Recorded::Recovered(&[orphan(1), orphan(2)]));
        assert_eq!(take(&trigger), ["d"]);
    }

    #[test]
    fn triggers_are_merged_and_wait_until_ready() {
        let trigger = PollTrigger::new();
        ["a", "b", "a"].into_iter().for_each(|service| trigger.trigger(service));
        assert_eq!(trigger.take(|service| service == "a"), ["a"]);
        assert_eq!(take(&trigger), ["b"]);
        assert!(!trigger.has_requests());
    }

    #[test]
    fn submission_polls_only_after_a_missed_trigger() {
        let trigger = PollTrigger::new();
        trigger.submitted("a");
        assert!(!trigger.has_requests());
        for found in [true, false] {
            trigger.trigger("a");
            take(&trigger);
            trigger.was_read("a", found);
            trigger.submitted("a");
            assert_eq!(trigger.has_requests(), !found);
        }
        take(&trigger);
        trigger.was_read("a", true);
        trigger.submitted("a");
        assert!(!trigger.has_requests(), "a missed trigger counts once");
    }

    #[test]
    fn accepted_services_are_taken_once() {
        let trigger = PollTrigger::new();
        ["a", "b", "a"].into_iter().for_each(|service| trigger.submitted(service));
        assert_eq!(trigger.take_accepted(), ["a", "b"].map(str::to_owned).into());
        assert_eq!(trigger.take_accepted(), HashSet::new());
    }

    #[test]
    fn submission_during_a_read_is_not_missed() {
        for found in [true, false] {
            let trigger = PollTrigger::new();
            trigger.trigger("a");
            take(&trigger);
            trigger.submitted("a");
            trigger.was_read("a", found);
            assert_eq!(trigger.has_requests(), !found);
        }
    }

    #[test]
    fn trigger_during_a_read_is_kept() {
        let trigger = PollTrigger::new();
        trigger.trigger("a");
        take(&trigger);
        trigger.trigger("a");
        trigger.was_read("a", false);
        assert_eq!(take(&trigger), ["a"]);
    }

    #[test]
    fn missed_services_are_bounded() {
        let trigger = PollTrigger::new();
        for number in 0..MAX_MISSED + 10 {
            let service = number.to_string();
            trigger.trigger(&service);
            take(&trigger);
            trigger.was_read(&service, false);
        }
        assert_eq!(trigger.services().missed.len(), MAX_MISSED);
        trigger.submitted(&(MAX_MISSED + 9).to_string());
        assert!(trigger.has_requests(), "the latest is remembered");
    }
}
