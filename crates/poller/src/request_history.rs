use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use grid_batch_core::{BatchId, MonotonicTime, PollPace};

/// The greatest number of batches that are remembered. Beyond it, batches may be asked for more
/// often than the pace allows.
const CAPACITY: usize = 1_000_000;

/// Below this number of batches, nothing is removed.
const FEW: usize = 1_000;

/// Remembers when the ledger was last asked for each batch.
///
/// It also counts passes over the pending batches, so that no batch is asked for twice before every
/// other one had its turn.
#[derive(Debug)]
pub(crate) struct RequestHistory {
    requests: HashMap<u64, RequestTimes>,
    hasher: RandomState,
    pass: u64,
    /// How long a batch of an earlier pass is remembered after its last request.
    keep: Duration,
    /// The number of batches at which old ones are removed.
    prune_at: usize,
    capacity: usize,
}

#[derive(Debug, Clone, Copy)]
struct RequestTimes {
    first: MonotonicTime,
    last: MonotonicTime,
    pass: u64,
}

impl RequestTimes {
    fn next(&self, pace: PollPace) -> MonotonicTime {
        self.last.plus(pace.pause(self.last.since(self.first)))
    }
}

/// Whether it is a batch's turn to be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is.
    Due,
    /// The pace does not allow it yet.
    TooEarly,
    /// The pace allows it, but it was asked for in this pass already.
    NextPass,
}

impl RequestHistory {
    /// A history for batches that are asked for at least every `longest_interval`.
    pub(crate) fn new(longest_interval: Duration) -> Self {
        Self {
            requests: HashMap::new(),
            hasher: RandomState::new(),
            pass: 0,
            keep: longest_interval.saturating_mul(2),
            prune_at: FEW,
            capacity: CAPACITY,
        }
    }

    pub(crate) fn turn(&self, batch: &impl BatchId, now: MonotonicTime, pace: PollPace) -> Turn {
        match self.requests.get(&self.key(batch.get_service_id(), batch.get_id())) {
            None => Turn::Due,
            Some(times) if now < times.next(pace) => Turn::TooEarly,
            Some(times) if times.pass == self.pass => Turn::NextPass,
            Some(_) => Turn::Due,
        }
    }

    /// Whether the batch was asked for in this pass.
    pub(crate) fn is_in_pass(&self, batch: &impl BatchId) -> bool {
        let key = self.key(batch.get_service_id(), batch.get_id());
        self.requests.get(&key).is_some_and(|times| times.pass == self.pass)
    }

    /// Records that the ledger is asked for the batch now.
    pub(crate) fn record(&mut self, batch: &impl BatchId, now: MonotonicTime) {
        let key = self.key(batch.get_service_id(), batch.get_id());
        let pass = self.pass;
        self.requests
            .entry(key)
            .and_modify(|times| *times = RequestTimes { last: now, pass, ..*times })
            .or_insert(RequestTimes { first: now, last: now, pass });
        if self.requests.len() >= self.prune_at {
            self.prune(now);
        }
    }

    /// Forgets a batch: it has ended, or will be submitted again.
    pub(crate) fn forget(&mut self, service_id: &str, batch_id: &str) {
        self.requests.remove(&self.key(service_id, batch_id));
    }

    pub(crate) fn start_pass(&mut self) {
        self.pass += 1;
    }

    fn prune(&mut self, now: MonotonicTime) {
        let (pass, keep) = (self.pass, self.keep);
        self.requests.retain(|_, times| times.pass == pass || now.since(times.last) < keep);
        if self.requests.len() >= self.capacity {
            self.remove_older_half();
        }
        self.prune_at = self.requests.len().saturating_mul(2).clamp(FEW, self.capacity.max(FEW));
    }

    fn remove_older_half(&mut self) {
        let mut times: Vec<MonotonicTime> =
            self.requests.values().map(|times| times.last).collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        self.requests.retain(|_, times| times.last > median);
    }

    fn key(&self, service_id: &str, batch_id: &str) -> u64 {
        self.hasher.hash_one((service_id, batch_id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const PACE: PollPace = PollPace { interval: SECOND, longest: Duration::from_secs(60) };

    #[derive(Debug, Clone)]
    struct Batch(String);

    impl BatchId for Batch {
        fn get_id(&self) -> &str {
            &self.0
        }

        fn get_service_id(&self) -> &str {
            "service"
        }
    }

    fn batch(number: usize) -> Batch {
        Batch(number.to_string())
    }

    fn at(seconds: u32) -> MonotonicTime {
        MonotonicTime::default().plus(SECOND * seconds)
    }

    fn turn(history: &RequestHistory, seconds: u32) -> Turn {
        history.turn(&batch(1), at(seconds), PACE)
    }

    #[test]
    fn batch_is_due_again_at_the_pace() {
        let mut history = RequestHistory::new(PACE.longest);
        assert_eq!(turn(&history, 0), Turn::Due);
        history.record(&batch(1), at(0));
        history.record(&batch(1), at(40));
        history.start_pass();
        assert_eq!((turn(&history, 49), turn(&history, 50)), (Turn::TooEarly, Turn::Due));
        history.forget("service", "1");
        assert_eq!(turn(&history, 41), Turn::Due);
    }

    #[test]
    fn batch_has_one_turn_in_a_pass() {
        let mut history = RequestHistory::new(PACE.longest);
        history.record(&batch(1), at(0));
        assert_eq!((turn(&history, 9), history.is_in_pass(&batch(1))), (Turn::NextPass, true));
        history.start_pass();
        assert_eq!((turn(&history, 9), history.is_in_pass(&batch(1))), (Turn::Due, false));
    }

    #[test]
    fn batches_of_earlier_passes_are_removed_after_a_time() {
        let mut history = RequestHistory::new(PACE.longest);
        (0..50_000).for_each(|number| history.record(&batch(number), at(0)));
        assert_eq!(history.requests.len(), 50_000, "they are of the present pass");
        history.start_pass();
        (50_000..100_000).for_each(|number| history.record(&batch(number), at(1_000)));
        assert!(history.requests.len() <= 50_000, "{}", history.requests.len());
    }

    #[test]
    fn history_is_bounded() {
        let mut history = RequestHistory { capacity: 2_000, ..RequestHistory::new(PACE.longest) };
        for number in 0..10_000 {
            history.record(&batch(number), at(0).plus(Duration::from_micros(number as u64)));
            assert!(history.requests.len() <= 2_000);
        }
        assert!(history.is_in_pass(&batch(9_999)), "the newest stay");
    }
}
