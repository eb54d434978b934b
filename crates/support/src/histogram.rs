use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Counts durations in buckets. Observing takes no lock and allocates nothing.
#[derive(Debug, Default)]
pub struct Histogram {
    /// How many durations were in each bucket. The last bucket has no bound.
    buckets: [AtomicU64; Histogram::BOUNDS.len() + 1],
    sum_micros: AtomicU64,
}

/// The values of a [`Histogram`] at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistogramValues {
    /// How many durations were at most as long as each of [`Histogram::BOUNDS`].
    pub at_most: [u64; Histogram::BOUNDS.len()],
    /// How many durations there were.
    pub count: u64,
    /// Their sum in seconds.
    pub sum: f64,
}

impl Histogram {
    /// The upper bounds of the buckets, in seconds.
    pub const BOUNDS: [f64; 16] = [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
        300.0,
    ];

    /// Counts a duration.
    pub fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = Self::BOUNDS.iter().position(|bound| seconds <= *bound);
        self.buckets[bucket.unwrap_or(Self::BOUNDS.len())].fetch_add(1, Relaxed);
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.sum_micros.fetch_add(micros, Relaxed);
    }

    /// The present values.
    pub fn read(&self) -> HistogramValues {
        let mut count = 0;
        let mut at_most = [0; Self::BOUNDS.len()];
        for (bucket, total) in self.buckets.iter().zip(&mut at_most) {
            count += bucket.load(Relaxed);
            *total = count;
        }
        count += self.buckets[Self::BOUNDS.len()].load(Relaxed);
        let sum = Duration::from_micros(self.sum_micros.load(Relaxed)).as_secs_f64();
        HistogramValues { at_most, count, sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duration_counts_in_all_buckets_from_its_own() {
        let histogram = Histogram::default();
        for millis in [1, 20, 300_001] {
            histogram.observe(Duration::from_millis(millis));
        }
        let values = histogram.read();
        assert_eq!((values.at_most[0], values.at_most[3], values.at_most[4]), (1, 1, 2));
        assert_eq!((values.at_most[15], values.count), (2, 3));
        assert!((values.sum - 300.022).abs() < 1e-6, "{}", values.sum);
    }
}
