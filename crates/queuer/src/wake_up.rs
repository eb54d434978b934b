use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use grid_batch_core::{InternalError, ServiceId, WakeUps};

/// Tells a queue which services to look at now, and whoever polls the queue that it is worth it.
///
/// Losing one does no harm: the queue looks through all services in turn anyway. Cheap to clone.
#[derive(Clone)]
pub struct WakeUp {
    shared: Arc<Shared>,
    delays: Sender<(Instant, ServiceId)>,
}

struct Shared {
    due: Mutex<Due>,
    poke: Box<dyn Fn() + Send + Sync>,
}

/// Services in the order in which they were woken, each once.
#[derive(Default)]
struct Due {
    order: VecDeque<ServiceId>,
    known: HashSet<ServiceId>,
}

impl WakeUp {
    /// A wake-up that calls `poke` when there is something to look at: whoever wakes the queue calls
    /// it, so it must be quick.
    ///
    /// It has a thread, which waits for delays to be over and ends with the last clone.
    pub fn new(poke: impl Fn() + Send + Sync + 'static) -> Result<Self, InternalError> {
        let shared = Arc::new(Shared { due: Mutex::default(), poke: Box::new(poke) });
        let (delays, delayed) = channel();
        let woken = Arc::clone(&shared);
        thread::Builder::new()
            .name("queue-delays".to_owned())
            .spawn(move || wait_for_delays(&delayed, &woken))
            .map_err(|error| InternalError::from_source("no thread for delays", error))?;
        Ok(Self { shared, delays })
    }

    /// The service has a batch that may be tried now: one was added, or the service is free.
    pub fn wake(&self, service: ServiceId) {
        self.shared.wake([service]);
    }

    /// The service has a batch that may be tried after this delay.
    pub fn wake_after(&self, service: ServiceId, delay: Duration) {
        if let Some(then) = Instant::now().checked_add(delay) {
            // Only a thread that panicked receives no more; the queue looks by itself then.
            let _ = self.delays.send((then, service));
        }
    }

    /// Up to `limit` services to look at, the first woken first.
    pub(crate) fn take(&self, limit: usize) -> Vec<ServiceId> {
        let mut due = self.shared.lock();
        let count = limit.min(due.order.len());
        let services: Vec<ServiceId> = due.order.drain(..count).collect();
        for service in &services {
            due.known.remove(service);
        }
        services
    }

    /// Puts services back that could not be looked at.
    pub(crate) fn give_back(&self, services: impl IntoIterator<Item = ServiceId>) {
        self.shared.lock().extend(services);
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
        f.debug_struct("WakeUp").field("due", &self.shared.lock().order.len()).finish()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, services: impl IntoIterator<Item = ServiceId>) {
        self.lock().extend(services);
        (self.poke)();
    }
}

impl Extend<ServiceId> for Due {
    fn extend<I: IntoIterator<Item = ServiceId>>(&mut self, services: I) {
        for service in services {
            if self.known.insert(service.clone()) {
                self.order.push_back(service);
            }
        }
    }
}

/// Sleeps until the next delay is over, or there is a new one, or nobody is left to give one.
fn wait_for_delays(delayed: &Receiver<(Instant, ServiceId)>, shared: &Shared) {
    let mut waiting: BTreeMap<Instant, Vec<ServiceId>> = BTreeMap::new();
    loop {
        let next = match waiting.first_key_value() {
            Some((then, _)) => delayed.recv_timeout(then.saturating_duration_since(Instant::now())),
            None => delayed.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok((then, service)) => waiting.entry(then).or_default().push(service),
            Err(RecvTimeoutError::Timeout) => {
                if let Some((_, services)) = waiting.pop_first() {
                    shared.wake(services);
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

    /// A wake-up, and a channel that says when it pokes.
    fn wake_up() -> (WakeUp, Receiver<()>) {
        let (poke, poked) = channel();
        let poke = Mutex::new(poke);
        let wake_up = WakeUp::new(move || poke.lock().unwrap().send(()).unwrap_or(())).unwrap();
        (wake_up, poked)
    }

    #[test]
    fn services_are_given_once_in_the_order_in_which_they_were_woken() {
        let (wake_up, poked) = wake_up();
        for name in ["b", "a", "b", "c"] {
            wake_up.wake(service(name));
        }
        assert_eq!(poked.try_iter().count(), 4);
        assert_eq!(wake_up.take(2), ["b", "a"].map(service));
        assert_eq!(wake_up.take(9), ["c"].map(service));
        assert!(wake_up.take(9).is_empty());
        wake_up.wake(service("b"));
        assert_eq!(wake_up.take(9), ["b"].map(service));
    }

    #[test]
    fn the_shorter_delay_is_over_first() {
        let (wake_up, poked) = wake_up();
        wake_up.wake_after(service("long"), Duration::from_millis(40));
        wake_up.wake_after(service("short"), Duration::from_millis(1));
        let patience = Duration::from_secs(30);
        poked.recv_timeout(patience).unwrap();
        poked.recv_timeout(patience).unwrap();
        assert_eq!(wake_up.take(9), ["short", "long"].map(service));
    }

    #[test]
    fn a_delay_without_end_does_no_harm() {
        let (wake_up, _poked) = wake_up();
        wake_up.wake_after(service("never"), Duration::MAX);
        assert!(wake_up.take(9).is_empty());
    }

    #[test]
    fn the_thread_ends_with_the_last_clone() {
        let (wake_up, poked) = wake_up();
        let clone = wake_up.clone();
        wake_up.wake_after(service("late"), Duration::from_secs(3_600));
        drop(wake_up);
        drop(clone);
        // The thread holds the last `poke`: its end closes the channel.
        assert_eq!(
            poked.recv_timeout(Duration::from_secs(30)),
            Err(RecvTimeoutError::Disconnected)
        );
    }
}
