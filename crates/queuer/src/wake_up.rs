use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use grid_batch_core::{InternalError, ServiceId, WakeUps};
use grid_batch_support::spawn_thread;

/// Reports to a queue which services have a batch to submit.
///
/// A lost wake-up only delays a batch, because the queue also scans all services. Clones wake the
/// same queue.
#[derive(Clone)]
pub struct WakeUp {
    state: Arc<WakeUpState>,
    delays: Sender<(Instant, ServiceId)>,
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
        Ok(Self { state, delays })
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

    /// Has the queue polled, although no service was woken.
    pub(crate) fn notify(&self) {
        (self.state.notify)();
    }

    /// Puts back services whose batches could not be taken.
    pub(crate) fn put_back(&self, services: impl IntoIterator<Item = ServiceId>) {
        self.state.lock().extend(services);
    }
}

impl WakeUps for WakeUp {
    fn wake(&self, service_id: &ServiceId) {
        Self::wake(self, service_id.clone());
    }

    fn wake_after(&self, service_id: &ServiceId, delay: Duration) {
        Self::wake_after(self, service_id.clone(), delay);
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
    use super::*;

    fn service(name: &str) -> ServiceId {
        name.parse().unwrap()
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
    fn delayed_wake_up_through_the_trait_notifies() {
        let (wake_up, notified) = wake_up();
        WakeUps::wake_after(&wake_up, &service("a"), Duration::from_millis(1));
        notified.recv_timeout(Duration::from_secs(30)).unwrap();
        assert_eq!(wake_up.take(9), ["a"].map(service));
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
