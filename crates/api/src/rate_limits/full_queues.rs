use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use grid_batch_core::{MonotonicTime, ServiceId};

/// The services whose queue was found full. While a queue is full, a batch is stored only when another one
/// has ended, so the batches that are stored show how fast places become free.
#[derive(Debug, Default)]
pub(crate) struct FullQueues {
    /// Whether any queue was full lately: as long as none was, nothing is locked.
    any: AtomicBool,
    services: Mutex<HashMap<ServiceId, Measured>>,
}

#[derive(Debug, Clone, Copy)]
struct Measured {
    since: MonotonicTime,
    last_full: MonotonicTime,
    stored: u32,
}

impl FullQueues {
    /// What is measured for longer than this tells nothing about the present.
    const LONGEST: Duration = Duration::from_secs(60);
    /// The answer when nothing was measured yet.
    const FIRST: Duration = Duration::from_secs(10);
    const SHORTEST: Duration = Duration::from_secs(1);

    pub(crate) fn stored(&self, service_id: &ServiceId, batches: usize) {
        if !self.any.load(Relaxed) {
            return;
        }
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(measured) = services.get_mut(service_id) {
            measured.stored =
                measured.stored.saturating_add(u32::try_from(batches).unwrap_or(u32::MAX));
        }
    }

    /// How long until one more batch has a place.
    pub(crate) fn wait(&self, service_id: &ServiceId, now: MonotonicTime) -> Duration {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        services.retain(|_, measured| now.since(measured.last_full) <= Self::LONGEST);
        self.any.store(true, Relaxed);
        let Some(measured) = services.get_mut(service_id) else {
            services.insert(service_id.clone(), Measured { since: now, last_full: now, stored: 0 });
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
    use grid_batch_core::{Clock, ManualClock, Timestamp};

    use super::*;

    #[test]
    fn wait_follows_the_rate_at_which_places_become_free() {
        let clock = ManualClock::at(Timestamp::from_micros(0));
        let (queues, service) = (FullQueues::default(), "a::b".parse().unwrap());
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
        let (queues, service) = (FullQueues::default(), "a::b".parse().unwrap());
        queues.wait(&service, clock.monotonic());
        for _ in 0..3 {
            clock.advance(Duration::from_secs(50));
            assert!(queues.wait(&service, clock.monotonic()) <= FullQueues::LONGEST);
        }
    }

    #[test]
    fn services_that_are_not_full_are_forgotten() {
        let clock = ManualClock::at(Timestamp::from_micros(0));
        let queues = FullQueues::default();
        for number in 0..5 {
            queues.wait(&format!("a::{number}").parse().unwrap(), clock.monotonic());
            clock.advance(Duration::from_secs(61));
        }
        assert_eq!(queues.services.lock().unwrap().len(), 1);
    }
}
