use std::{hash::Hash, sync::Mutex, time::Duration};

use grid_batch_core::MonotonicTime;
use grid_batch_support::{BoundedMap, lock};

use super::Rate;

/// A bucket of places for each key: it fills at a rate up to a burst, and each item takes one
/// place. Items that cannot be refused any more may take more than there are.
#[derive(Debug)]
pub(crate) struct Buckets<K> {
    rate: Rate,
    by_key: Mutex<BoundedMap<K, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    available: f64,
    at: MonotonicTime,
}

impl<K: Clone + Eq + Hash> Buckets<K> {
    /// The oldest are forgotten when there are more.
    const KEYS: usize = 10_000;

    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, by_key: Mutex::new(BoundedMap::new(Self::KEYS)) }
    }

    /// Takes one. The error is the time until there is one.
    pub(crate) fn take(&self, key: &K, now: MonotonicTime) -> Result<(), Duration> {
        self.with(key, now, |available, per_second| {
            check_one(*available, per_second)?;
            *available -= 1.0;
            Ok(())
        })
    }

    /// Whether there is one.
    pub(crate) fn has_one(&self, key: &K, now: MonotonicTime) -> Result<(), Duration> {
        self.with(key, now, |available, per_second| check_one(*available, per_second))
    }

    /// Takes these, also if there are not so many.
    pub(crate) fn charge(&self, key: &K, count: usize, now: MonotonicTime) {
        let count = u32::try_from(count).map_or(f64::from(u32::MAX), f64::from);
        self.with(key, now, |available, _| *available -= count);
    }

    fn with<T>(&self, key: &K, now: MonotonicTime, work: impl FnOnce(&mut f64, f64) -> T) -> T {
        let burst = f64::from(self.rate.burst.get());
        let per_second = f64::from(self.rate.per_second.get());
        let mut by_key = lock(&self.by_key);
        let bucket = by_key.get_or_insert_with(key, || Bucket { available: burst, at: now });
        let filled = now.since(bucket.at).as_secs_f64() * per_second;
        bucket.available = (bucket.available + filled).min(burst);
        bucket.at = now;
        work(&mut bucket.available, per_second)
    }
}

fn check_one(available: f64, per_second: f64) -> Result<(), Duration> {
    if available < 1.0 {
        return Err(Duration::from_secs_f64((1.0 - available) / per_second));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{Clock, ManualClock, Timestamp};

    use super::*;

    fn buckets(rate: &str) -> (Buckets<&'static str>, ManualClock) {
        (Buckets::new(rate.parse().unwrap()), ManualClock::at(Timestamp::from_micros(0)))
    }

    #[test]
    fn burst_is_taken_at_once_and_then_the_rate() {
        let (buckets, clock) = buckets("2/3");
        for _ in 0..3 {
            assert_eq!(buckets.take(&"a", clock.monotonic()), Ok(()));
        }
        assert_eq!(buckets.take(&"a", clock.monotonic()), Err(Duration::from_millis(500)));
        assert_eq!(buckets.take(&"b", clock.monotonic()), Ok(()), "another key has its own");
        clock.advance(Duration::from_millis(500));
        assert_eq!(buckets.take(&"a", clock.monotonic()), Ok(()));
        assert!(buckets.take(&"a", clock.monotonic()).is_err());
    }

    #[test]
    fn what_was_charged_is_waited_for() {
        let (buckets, clock) = buckets("2/3");
        buckets.charge(&"a", 11, clock.monotonic());
        assert_eq!(buckets.has_one(&"a", clock.monotonic()), Err(Duration::from_millis(4_500)));
        clock.advance(Duration::from_millis(4_500));
        assert_eq!(buckets.has_one(&"a", clock.monotonic()), Ok(()));
    }

    #[test]
    fn pause_gives_no_more_than_the_burst() {
        let (buckets, clock) = buckets("2/3");
        assert_eq!(buckets.take(&"a", clock.monotonic()), Ok(()));
        clock.advance(Duration::from_secs(3_600));
        let taken = (0..10).filter(|_| buckets.take(&"a", clock.monotonic()).is_ok()).count();
        assert_eq!(taken, 3);
    }
}
