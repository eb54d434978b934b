use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use grid_batch_core::{PollTriggers, ServiceId};
use tokio::sync::Notify;

/// Asks a polling monitor to poll a service at once, however recently it did.
///
/// Nothing is lost: what is triggered before the monitor runs is polled when it does, and what is
/// triggered while a question is under way is polled once more after it. Cheap to clone, and to call
/// often; it stays good when the monitor is stopped and started again.
#[derive(Debug, Clone, Default)]
pub struct PollTrigger(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    marks: Mutex<Marks>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Marks {
    /// To be polled.
    wanted: HashSet<String>,
    /// Being looked for in the store; whether a batch was submitted meanwhile.
    looking: HashMap<String, bool>,
    /// Triggered when nothing was pending.
    missed: HashSet<String>,
}

/// So many services are remembered that were triggered when nothing was pending.
const MISSED: usize = 10_000;

impl PollTrigger {
    /// A trigger, to be given to a [`PollingMonitorBuilder`](crate::PollingMonitorBuilder).
    pub fn new() -> Self {
        Self::default()
    }

    /// Has this service polled at once.
    pub fn trigger(&self, service_id: &str) {
        let mut marks = self.marks();
        marks.missed.remove(service_id);
        if marks.wanted.contains(service_id) {
            return;
        }
        marks.wanted.insert(service_id.to_owned());
        self.0.wake.notify_one();
    }

    /// Says that a ledger took a batch of this service, and that the store knows.
    ///
    /// An event may overtake the answer to a submission: then it found nothing to poll. If there was
    /// such an event, the service is polled now.
    pub fn submitted(&self, service_id: &str) {
        let mut marks = self.marks();
        if let Some(submitted) = marks.looking.get_mut(service_id) {
            *submitted = true;
        }
        if marks.missed.contains(service_id) {
            drop(marks);
            self.trigger(service_id);
        }
    }

    /// Waits until something was triggered.
    pub(crate) async fn woken(&self) {
        self.0.wake.notified().await;
    }

    pub(crate) fn is_wanted(&self) -> bool {
        !self.marks().wanted.is_empty()
    }

    /// Takes those of the triggered services that are ready, to look for their batches.
    pub(crate) fn take(&self, is_ready: impl Fn(&str) -> bool) -> Vec<String> {
        let mut marks = self.marks();
        let taken: Vec<String> = marks.wanted.extract_if(|service| is_ready(service)).collect();
        marks.looking.extend(taken.iter().map(|service| (service.clone(), false)));
        taken
    }

    /// Says whether a taken service had anything pending.
    pub(crate) fn looked(&self, service_id: &str, found: bool) {
        let mut marks = self.marks();
        let submitted = marks.looking.remove(service_id).unwrap_or_default();
        if found || marks.wanted.contains(service_id) {
            return;
        }
        if submitted {
            drop(marks);
            return self.trigger(service_id);
        }
        marks.remember_missed(service_id);
    }

    /// Puts a taken service back, to be taken later.
    pub(crate) fn put_back(&self, service_id: String) {
        let mut marks = self.marks();
        marks.looking.remove(&service_id);
        marks.wanted.insert(service_id);
    }

    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.0.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PollTriggers for PollTrigger {
    fn trigger(&self, service_id: &ServiceId) {
        Self::trigger(self, service_id.as_str());
    }

    fn submitted(&self, service_id: &ServiceId) {
        Self::submitted(self, service_id.as_str());
    }
}

impl Marks {
    fn remember_missed(&mut self, service_id: &str) {
        if self.missed.len() >= MISSED
            && let Some(any) = self.missed.iter().next().cloned()
        {
            self.missed.remove(&any);
        }
        self.missed.insert(service_id.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(trigger: &PollTrigger) -> Vec<String> {
        let mut taken = trigger.take(|_| true);
        taken.sort();
        taken
    }

    #[test]
    fn many_triggers_are_one_and_those_that_are_not_ready_stay() {
        let trigger = PollTrigger::new();
        ["a", "b", "a"].into_iter().for_each(|service| trigger.trigger(service));
        assert_eq!(trigger.take(|service| service == "a"), ["a"]);
        assert_eq!(take(&trigger), ["b"]);
        assert!(!trigger.is_wanted());
    }

    #[test]
    fn a_submission_wants_a_poll_only_after_a_trigger_that_found_nothing() {
        let trigger = PollTrigger::new();
        trigger.submitted("a");
        assert!(!trigger.is_wanted());
        for found in [true, false] {
            trigger.trigger("a");
            take(&trigger);
            trigger.looked("a", found);
            trigger.submitted("a");
            assert_eq!(trigger.is_wanted(), !found);
        }
        take(&trigger);
        trigger.looked("a", true);
        trigger.submitted("a");
        assert!(!trigger.is_wanted(), "one trigger is missed once");
    }

    #[test]
    fn a_submission_while_the_store_is_looked_at_is_not_missed() {
        for found in [true, false] {
            let trigger = PollTrigger::new();
            trigger.trigger("a");
            take(&trigger);
            trigger.submitted("a");
            trigger.looked("a", found);
            assert_eq!(trigger.is_wanted(), !found);
        }
    }

    #[test]
    fn a_trigger_while_the_store_is_looked_at_is_one_more() {
        let trigger = PollTrigger::new();
        trigger.trigger("a");
        take(&trigger);
        trigger.trigger("a");
        trigger.looked("a", false);
        assert_eq!(take(&trigger), ["a"]);
    }

    #[test]
    fn what_was_missed_is_remembered_up_to_a_bound() {
        let trigger = PollTrigger::new();
        for number in 0..MISSED + 10 {
            let service = number.to_string();
            trigger.trigger(&service);
            take(&trigger);
            trigger.looked(&service, false);
        }
        assert_eq!(trigger.marks().missed.len(), MISSED);
        trigger.submitted(&(MISSED + 9).to_string());
        assert!(trigger.is_wanted(), "the latest is among them");
    }
}
