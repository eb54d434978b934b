use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use grid_batch_api::HistoryPoint;

/// Depth, age and counts of the last hour, in memory. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct History(Arc<Mutex<VecDeque<Sample>>>);

/// One measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) at: Instant,
    pub(super) open: u64,
    pub(super) oldest: Duration,
    pub(super) submitted: u64,
    pub(super) committed: u64,
    pub(super) invalid: u64,
}

impl History {
    const LENGTH: Duration = Duration::from_secs(60 * 60);
    /// Samples are kept at least this far apart. The latest is always kept.
    const DISTANCE: Duration = Duration::from_secs(10);

    pub(super) fn record(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let [.., before, last] = samples.make_contiguous()
            && last.at.duration_since(before.at) < Self::DISTANCE
        {
            samples.pop_back();
        }
        samples.push_back(sample);
        while samples.front().is_some_and(|it| sample.at.duration_since(it.at) > Self::LENGTH) {
            samples.pop_front();
        }
    }

    /// The samples, oldest first.
    pub fn read(&self) -> Vec<HistoryPoint> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let point = |sample: &Sample| HistoryPoint {
            seconds_ago: sample.at.elapsed().as_secs_f64(),
            open: sample.open,
            oldest_seconds: sample.oldest.as_secs_f64(),
            submitted: sample.submitted,
            committed: sample.committed,
            invalid: sample.invalid,
        };
        samples.iter().map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(history: &History, start: Instant, seconds: u64) {
        let at = start + Duration::from_secs(seconds);
        let (oldest, committed) = (Duration::ZERO, seconds);
        history.record(Sample { at, open: 1, oldest, submitted: 0, committed, invalid: 0 });
    }

    fn committed(history: &History) -> Vec<u64> {
        history.read().iter().map(|point| point.committed).collect()
    }

    #[test]
    fn close_samples_are_replaced_by_the_latest() {
        let (history, start) = (History::default(), Instant::now());
        for seconds in [0, 5, 10, 15, 20, 25] {
            record(&history, start, seconds);
        }
        assert_eq!(committed(&history), [0, 10, 20, 25]);
    }

    #[test]
    fn old_samples_are_dropped() {
        let (history, start) = (History::default(), Instant::now());
        for seconds in [0, 10, 3_605, 3_612] {
            record(&history, start, seconds);
        }
        assert_eq!(committed(&history), [3_605, 3_612]);
    }
}
