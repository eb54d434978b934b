use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use grid_batch_core::MonotonicTime;
use grid_batch_support::lock;

/// The services, or the clients, whose queue was found full. While a queue is full, a batch is stored only when another one
/// has ended, so the batches that are stored show how fast places become free.
#[derive(Debug)]
pub(crate) struct FullQueues<K> {
    /// Whether any queue was full lately: as long as none was, nothing is locked.
    any: AtomicBool,
    queues: Mutex<HashMap<K, Measured>>,
}

#[derive(Debug, Clone, Copy)]
struct Measured {
    since: MonotonicTime,
    last_full: MonotonicTime,
    stored: u32,
}

impl<K> Default for FullQueues<K> {
    fn default() -> Self {
        Self { any: AtomicBool::default(), queues: Mutex::default() }
    }
}

impl<K: Clone + Eq + Hash> FullQueues<K> {
    /// What is measured for longer than this tells nothing about the present.
    const LONGEST: Duration = Duration::from_secs(60);
    /// The answer when nothing was measured yet.
    const FIRST: Duration = Duration::from_secs(10);
    const SHORTEST: Duration = Duration::from_secs(1);

    pub(crate) fn stored(&self, key: &K, batches: usize) {
        if !self.any.load(Relaxed) {
            return;
        }
        let mut queues = lock(&self.queues);
        if let Some(measured) = queues.get_mut(key) {
            measured.stored =
                measured.stored.saturating_add(u32::try_from(batches).unwrap_or(u32::MAX));
        }
    }

    /// How long until one more batch has a place.
    pub(crate) fn wait(&self, key: &K, now: MonotonicTime) -> Duration {
        let mut queues = lock(&self.queues);
        queues.retain(|_, measured| now.since(measured.last_full) <= Self::LONGEST);
        self.any.store(true, Relaxed);
        let Some(measured) = queues.get_mut(key) else {
            queues.insert(key.clone(), Measured { since: now, last_full: now, stored: 0 });
            return Self::FIRST;
        };
        measured.last_full = now;
        let elapsed = now.since(measured.since);
        let wait = match measured.stored {
            // Nothing has ended since: it may take as long again.
            0 => elapsed.max(Self::FIRST),
            stored => elapsed / stored,
        };
        if elapsed > Self::LONGEST {
            *measured = Measured { since: now, last_full: now, stored: 0 };
        }
        wait.clamp(Self::SHORTEST, Self::LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{Clock, ManualClock, ServiceId, Timestamp};

    use super::*;

    fn service() -> ServiceId {
        "a::b".parse().unwrap()
    }

    #[test]
    fn wait_follows_the_rate_at_which_places_become_free() {
        let clock = ManualClock::at(Timestamp::from_micros(0));
        let (queues, service) = (FullQueues::default(), service());
        let wait = |seconds| {
            clock.advance(Duration::from_secs(seconds));
            queues.wait(&service, clock.monotonic()).as_secs()
        };
        assert_eq!(wait(0), 10, "nothing is known yet");
        assert_eq!(wait(20), 20, "nothing has ended");
        queues.stored(&service, 10);
        assert_eq!(wait(10), 3, "ten in 30 s");
        queues.stored(&service, 990);
        assert_eq!(wait(0), 1, "at least a second");
        assert_eq!(wait(3_600), 10, "what is old does not count");
    }

    #[test]
    fn slow_services_wait_for_a_minute_at_most() {
        let clock = ManualClock::at(Timestamp::from_micros(0));
        let (queues, service) = (FullQueues::default(), service());
        queues.wait(&service, clock.monotonic());
        for _ in 0..3 {
            clock.advance(Duration::from_secs(50));
            assert!(queues.wait(&service, clock.monotonic()) <= FullQueues::<ServiceId>::LONGEST);
        }
    }

    #[test]
    fn services_that_are_not_full_are_forgotten() {
        let clock = ManualClock::at(Timestamp::from_micros(0));
        let queues = FullQueues::<u8>::default();
        for number in 0..5 {
            queues.wait(&number, clock.monotonic());
            clock.advance(Duration::from_secs(61));
        }
        assert_eq!(queues.queues.lock().unwrap().len(), 1);
    }
}
