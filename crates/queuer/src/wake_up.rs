use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use grid_batch_core::{
    BatchState, Clock, InternalError, Recorded, RecordedSubscriber, ServiceId, SystemClock,
};
use grid_batch_support::spawn_thread;

/// Reports to a queue which services have a batch to submit.
///
/// A lost wake-up only delays a batch, because the queue also scans all services. Clones wake the
/// same queue.
#[derive(Clone)]
pub struct WakeUp {
    state: Arc<WakeUpState>,
    delays: Sender<(Instant, ServiceId)>,
    clock: Arc<dyn Clock>,
}

struct WakeUpState {
    woken: Mutex<WokenServices>,
    notify: Box<dyn Fn() + Send + Sync>,
}

/// Services in the order in which they were woken, each once.
#[derive(Default)]
struct WokenServices {
    order: VecDeque<ServiceId>,
    set: HashSet<ServiceId>,
}

impl WakeUp {
    /// A wake-up that calls `notify` each time a service is woken, so that the queue is polled. It
    /// must return quickly.
    ///
    /// It starts a thread for delayed wake-ups, which ends with the last clone.
    pub fn new(notify: impl Fn() + Send + Sync + 'static) -> Result<Self, InternalError> {
        let state = Arc::new(WakeUpState { woken: Mutex::default(), notify: Box::new(notify) });
        let (delays, delayed) = channel();
        let thread_state = Arc::clone(&state);
        spawn_thread("queue-delays", move || wake_delayed(&delayed, &thread_state))?;
        Ok(Self { state, delays, clock: Arc::new(SystemClock) })
    }

    /// Uses this clock instead of the system's.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The service has a batch that may be submitted now: one was added, or the last one ended.
    pub fn wake(&self, service: ServiceId) {
        self.state.wake([service]);
    }

    /// The service has a batch that may be submitted after this delay.
    pub fn wake_after(&self, service: ServiceId, delay: Duration) {
        if let Some(at) = Instant::now().checked_add(delay) {
            // It fails only if the thread panicked. Then the scan finds the service.
            let _ = self.delays.send((at, service));
        }
    }

    /// Takes up to `limit` services, in the order in which they were woken.
    pub(crate) fn take(&self, limit: usize) -> Vec<ServiceId> {
        let mut woken = self.state.lock();
        let count = limit.min(woken.order.len());
        let services: Vec<ServiceId> = woken.order.drain(..count).collect();
        for service in &services {
            woken.set.remove(service);
        }
        services
    }

    /// Whether no service is woken.
    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().order.is_empty()
    }

    /// Has the queue polled, although no service was woken.
    pub(crate) fn notify(&self) {
        (self.state.notify)();
    }

    /// Puts back services whose batches could not be taken.
    pub(crate) fn put_back(&self, services: impl IntoIterator<Item = ServiceId>) {
        self.state.lock().extend(services);
    }
}

/// Wakes services that have a batch to submit now, or after its delay.
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
        f.debug_struct("WakeUp").field("woken", &self.state.lock().order.len()).finish()
    }
}

impl WakeUpState {
    fn lock(&self) -> MutexGuard<'_, WokenServices> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, services: impl IntoIterator<Item = ServiceId>) {
        self.lock().extend(services);
        (self.notify)();
    }
}

impl Extend<ServiceId> for WokenServices {
    fn extend<I: IntoIterator<Item = ServiceId>>(&mut self, services: I) {
        for service in services {
            if self.set.insert(service.clone()) {
                self.order.push_back(service);
            }
        }
    }
}

/// Wakes services when their delays end, until every sender of delays is gone.
fn wake_delayed(delayed: &Receiver<(Instant, ServiceId)>, state: &WakeUpState) {
    let mut waiting: BTreeMap<Instant, Vec<ServiceId>> = BTreeMap::new();
    loop {
        let next = match waiting.first_key_value() {
            Some((at, _)) => delayed.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => delayed.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok((at, service)) => waiting.entry(at).or_default().push(service),
            Err(RecvTimeoutError::Timeout) => {
                if let Some((_, services)) = waiting.pop_first() {
                    state.wake(services);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{
        Change, Claim, Event, Evidence, ItemId, LedgerStatus, ManualClock, Outcome, Takeover,
        Timestamp,
    };

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
        let wake_up = WakeUp::new(move || notify.lock().unwrap().send(()).unwrap_or(())).unwrap();
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
        wake_up.wake_after(service("long"), Duration::from_millis(40));
        wake_up.wake_after(service("short"), Duration::from_millis(1));
        let timeout = Duration::from_secs(30);
        notified.recv_timeout(timeout).unwrap();
        notified.recv_timeout(timeout).unwrap();
        assert_eq!(wake_up.take(9), ["short", "long"].map(service));
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
        let (wake_up, notified) = wake_up();
        let now = Timestamp::from_micros(7);
        let wake_up = wake_up.with_clock(Arc::new(ManualClock::at(now)));
        let change = change(Event::Outcome { attempt: 1, outcome: Outcome::NotSent });
        let delayed = |delay| {
            let change = Change { retry_at: Some(now.plus(delay)), ..change.clone() };
            let state = BatchState::Delayed;
            wake_up.recorded(Recorded::Change { change: &change, state, next_waits: false });
        };
        let started = Instant::now();
        delayed(Duration::from_secs(3_600));
        delayed(Duration::from_millis(20));
        notified.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(started.elapsed() >= Duration::from_millis(20));
        assert_eq!(wake_up.take(9), ["a"].map(service));
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
        let takeover = Takeover { claims: claims.into(), in_doubt };
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

    #[test]
    fn thread_ends_with_the_last_clone() {
        let (wake_up, notified) = wake_up();
        let clone = wake_up.clone();
        wake_up.wake_after(service("late"), Duration::from_secs(3_600));
        drop(wake_up);
        drop(clone);
        // The thread holds the last `notify`, so its end closes the channel.
        assert_eq!(
            notified.recv_timeout(Duration::from_secs(30)),
            Err(RecvTimeoutError::Disconnected)
        );
    }
}
