use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::batches::BatchState;
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::{Clock, MonotonicTime, ServiceId, SystemClock};
use grid_batch_support::lock;

use crate::service_queue::ServiceQueue;

/// Reports to a queue which services have a batch to submit, now or after a delay.
///
/// A lost wake-up only delays a batch, because the queue also scans all services. Clones wake the
/// same queue.
#[derive(Clone)]
pub struct WakeUp {
    state: Arc<WakeUpState>,
    clock: Arc<dyn Clock>,
}

struct WakeUpState {
    woken: Mutex<Woken>,
    notify: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Woken {
    /// In the order in which they were woken.
    services: ServiceQueue,
    /// The services to wake at these times.
    delayed: BTreeSet<(MonotonicTime, ServiceId)>,
}

impl WakeUp {
    /// A wake-up that calls `notify` each time a service is woken, so that the queue is polled. `notify` must return
    /// quickly.
    ///
    /// `notify` is not called when a delay ends: the caller must poll the queue again after
    /// [`next_due`](Self::next_due).
    pub fn new(notify: impl Fn() + Send + Sync + 'static) -> Self {
        let state = Arc::new(WakeUpState { woken: Mutex::default(), notify: Box::new(notify) });
        Self { state, clock: Arc::new(SystemClock) }
    }

    /// Uses this clock instead of the system's.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Wakes the service, which has a batch that may be submitted now because one was added or the last one ended.
    pub fn wake(&self, service: ServiceId) {
        lock(&self.state.woken).services.extend([service]);
        self.notify();
    }

    /// Wakes the service after this delay, when a batch of it may be submitted.
    pub fn wake_after(&self, service: ServiceId, delay: Duration) {
        let at = self.clock.monotonic().plus(delay);
        let mut woken = lock(&self.state.woken);
        let is_first = woken.delayed.first().is_none_or(|(first, _)| at < *first);
        woken.delayed.insert((at, service));
        drop(woken);
        if is_first {
            // The task that polls the queue may be sleeping for longer.
            self.notify();
        }
    }

    /// The time until a delay ends; `None` if there is none.
    pub fn next_due(&self) -> Option<Duration> {
        let now = self.clock.monotonic();
        lock(&self.state.woken).delayed.first().map(|(at, _)| at.since(now))
    }

    /// Takes up to `limit` services, in the order in which they were woken.
    pub(crate) fn take(&self, limit: usize) -> Vec<ServiceId> {
        let mut woken = lock(&self.state.woken);
        let has_ended = woken.end_delays(self.clock.monotonic());
        let services = woken.services.take(limit);
        let are_left = has_ended && woken.services.len() > 0;
        drop(woken);
        if are_left {
            self.notify();
        }
        services
    }

    /// Whether no service is woken. A delay that has ended is kept, so that [`next_due`](Self::next_due) reports it.
    pub(crate) fn is_empty(&self) -> bool {
        let now = self.clock.monotonic();
        let woken = lock(&self.state.woken);
        woken.services.len() == 0 && woken.delayed.first().is_none_or(|(at, _)| *at > now)
    }

    /// Requests a poll of the queue although no service was woken.
    pub(crate) fn notify(&self) {
        (self.state.notify)();
    }

    /// Puts back services whose batches could not be taken.
    pub(crate) fn put_back(&self, services: impl IntoIterator<Item = ServiceId>) {
        lock(&self.state.woken).services.extend(services);
    }
}

impl Woken {
    /// Returns whether a delay has ended.
    fn end_delays(&mut self, now: MonotonicTime) -> bool {
        let mut has_ended = false;
        while self.delayed.first().is_some_and(|(at, _)| *at <= now) {
            self.services.extend(self.delayed.pop_first().map(|(_, service)| service));
            has_ended = true;
        }
        has_ended
    }
}

/// Wakes services that have a batch to submit now or after its delay.
impl RecordedSubscriber for WakeUp {
    fn recorded(&self, entry: Recorded<'_>) {
        match entry {
            Recorded::Change { change, state, next_waits } => {
                let service_id = &change.service_id;
                if next_waits || state == BatchState::Absent {
                    self.wake(service_id.clone());
                }
                if state == BatchState::Delayed {
                    let delay = change.retry_at.map(|time| time.since(self.clock.now()));
                    self.wake_after(service_id.clone(), delay.unwrap_or_default());
                }
            }
            Recorded::Stored(services)
            | Recorded::Submittable(services)
            | Recorded::Freed(services)
            | Recorded::Resumed(services) => {
                services.iter().for_each(|service_id| self.wake(service_id.clone()));
            }
            Recorded::TakenOver(takeover) => {
                takeover.claims.iter().for_each(|claim| self.wake(claim.service_id.clone()));
            }
            _ => {}
        }
    }
}

impl fmt::Debug for WakeUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let woken = lock(&self.state.woken);
        f.debug_struct("WakeUp")
            .field("woken", &woken.services.len())
            .field("delayed", &woken.delayed.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use grid_batch_core::batches::{Change, Event, LedgerStatus};
    use grid_batch_core::claims::{Claim, Takeover};
    use grid_batch_core::evidence::Evidence;
    use grid_batch_core::ledger::Outcome;
    use grid_batch_core::{ItemId, ManualClock, Timestamp};

    use super::*;

    fn service(name: &str) -> ServiceId {
        name.parse().unwrap()
    }

    fn change(event: Event) -> Change {
        Change::new(service("a"), ItemId::from_bytes([1; 64]), event)
    }

    /// A wake-up, and a channel that receives its notifications.
    fn wake_up() -> (WakeUp, Receiver<()>) {
        let (notify, notified) = channel();
        let notify = Mutex::new(notify);
        let wake_up = WakeUp::new(move || notify.lock().unwrap().send(()).unwrap_or(()));
        (wake_up, notified)
    }

    #[test]
    fn woken_services_are_taken_once_in_order() {
        let (wake_up, notified) = wake_up();
        for name in ["b", "a", "b", "c"] {
            wake_up.wake(service(name));
        }
        assert_eq!(notified.try_iter().count(), 4);
        assert_eq!(wake_up.take(2), ["b", "a"].map(service));
        assert_eq!(wake_up.take(9), ["c"].map(service));
        assert!(wake_up.take(9).is_empty());
        wake_up.wake(service("b"));
        assert_eq!(wake_up.take(9), ["b"].map(service));
    }

    #[test]
    fn shorter_delay_ends_first() {
        let (wake_up, notified) = wake_up();
        let clock = Arc::new(ManualClock::default());
        let wake_up = wake_up.with_clock(Arc::<ManualClock>::clone(&clock));
        assert_eq!(wake_up.next_due(), None);
        wake_up.wake_after(service("long"), Duration::from_millis(40));
        wake_up.wake_after(service("short"), Duration::from_millis(1));
        assert_eq!(notified.try_iter().count(), 2, "each ends before the delays known so far");
        wake_up.wake_after(service("longest"), Duration::from_millis(50));
        assert_eq!(notified.try_iter().count(), 0);
        assert_eq!(wake_up.next_due(), Some(Duration::from_millis(1)));
        clock.advance(Duration::from_millis(1));
        assert_eq!(wake_up.next_due(), Some(Duration::ZERO));
        assert!(!wake_up.is_empty());
        assert_eq!(wake_up.next_due(), Some(Duration::ZERO), "it was not taken");
        clock.advance(Duration::from_millis(40));
        assert_eq!(wake_up.take(9), ["short", "long"].map(service));
        assert_eq!(wake_up.next_due(), Some(Duration::from_millis(9)));
    }

    #[test]
    fn delays_that_end_together_cause_another_poll() {
        let (wake_up, notified) = wake_up();
        let clock = Arc::new(ManualClock::default());
        let wake_up = wake_up.with_clock(Arc::<ManualClock>::clone(&clock));
        for name in ["a", "b", "c"] {
            wake_up.wake_after(service(name), Duration::from_millis(1));
        }
        clock.advance(Duration::from_millis(1));
        notified.try_iter().for_each(drop);
        assert_eq!(wake_up.take(2), ["a", "b"].map(service));
        assert_eq!(notified.try_iter().count(), 1, "one is left");
        assert_eq!(wake_up.take(2), ["c"].map(service));
        assert_eq!(notified.try_iter().count(), 0);
    }

    #[test]
    fn change_wakes_its_service_if_it_has_a_batch_to_submit() {
        let (wake_up, notified) = wake_up();
        let committed = change(Event::status(LedgerStatus::Committed));
        let accepted = change(Event::Outcome { attempt: 1, outcome: Outcome::Accepted });
        let absent = change(Event::Evidence { attempt: 1, evidence: Evidence::Absent });
        for (change, state, next_waits, is_woken) in [
            (&committed, BatchState::Committed, true, true),
            (&committed, BatchState::Committed, false, false),
            (&accepted, BatchState::Pending, true, true),
            (&accepted, BatchState::Pending, false, false),
            (&absent, BatchState::Absent, true, true),
            (&absent, BatchState::Absent, false, true),
        ] {
            wake_up.recorded(Recorded::Change { change, state, next_waits });
            assert_eq!(notified.try_iter().count(), usize::from(is_woken), "{state} {next_waits}");
            assert_eq!(wake_up.take(9).len(), usize::from(is_woken), "{state} {next_waits}");
        }
    }

    #[test]
    fn delayed_batch_wakes_its_service_when_it_is_due() {
        let (wake_up, _notified) = wake_up();
        let now = Timestamp::from_micros(7);
        let clock = Arc::new(ManualClock::at(now));
        let wake_up = wake_up.with_clock(Arc::<ManualClock>::clone(&clock));
        let change = change(Event::Outcome { attempt: 1, outcome: Outcome::NotSent });
        let delayed = |delay| {
            let change = Change { retry_at: Some(now.plus(delay)), ..change.clone() };
            let state = BatchState::Delayed;
            wake_up.recorded(Recorded::Change { change: &change, state, next_waits: false });
        };
        delayed(Duration::from_hours(1));
        delayed(Duration::from_millis(20));
        clock.advance(Duration::from_millis(19));
        assert!(wake_up.take(9).is_empty());
        clock.advance(Duration::from_millis(1));
        assert_eq!(wake_up.take(9), ["a"].map(service));
        assert!(wake_up.take(9).is_empty());
    }

    #[test]
    fn services_with_new_batches_or_a_new_owner_are_woken() {
        let (wake_up, notified) = wake_up();
        let services = ["a", "b"].map(service);
        wake_up.recorded(Recorded::Stored(&services));
        assert_eq!(wake_up.take(9), services);
        wake_up.recorded(Recorded::Submittable(&services[1..]));
        wake_up.recorded(Recorded::Resumed(&services[..1]));
        assert_eq!(wake_up.take(9), ["b", "a"].map(service));
        wake_up.recorded(Recorded::Freed(&services));
        assert_eq!(wake_up.take(9), services);
        notified.try_iter().for_each(drop);
        let claims = services.map(|service_id| Claim { service_id, epoch: 1 });
        let in_doubt = |number: u8| (service("a"), ItemId::from_bytes([number; 64]));
        let in_doubt = (0..100).map(in_doubt).collect();
        let takeover = Takeover { claims: claims.into(), in_doubt, ..Takeover::default() };
        wake_up.recorded(Recorded::TakenOver(&takeover));
        assert_eq!(wake_up.take(9), ["a", "b"].map(service));
        assert_eq!(notified.try_iter().count(), 2, "each is woken once");
    }

    #[test]
    fn longest_delay_does_not_overflow() {
        let (wake_up, _notified) = wake_up();
        wake_up.wake_after(service("never"), Duration::MAX);
        assert!(wake_up.take(9).is_empty());
    }
}
