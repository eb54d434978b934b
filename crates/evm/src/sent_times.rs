use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use grid_batch_core::MonotonicTime;

/// How long ago transactions were sent, by the monotonic clock.
///
/// The stored time of sending is not compared with the time of day, which may have been set
/// meanwhile. A transaction that was sent by another process counts from when it was first seen.
#[derive(Debug, Default)]
pub(crate) struct SentTimes(Mutex<HashMap<[u8; 32], MonotonicTime>>);

impl SentTimes {
    /// How many transactions are remembered. Beyond that, all are forgotten and count from when they
    /// are seen again.
    const CAPACITY: usize = 10_000;

    /// Records that a transaction is sent now.
    pub(crate) fn record(&self, hash: [u8; 32], now: MonotonicTime) {
        self.lock().insert(hash, now);
    }

    /// How long ago the transaction was sent.
    pub(crate) fn elapsed(&self, hash: [u8; 32], now: MonotonicTime) -> Duration {
        now.since(*self.lock().entry(hash).or_insert(now))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], MonotonicTime>> {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if times.len() > Self::CAPACITY {
            times.clear();
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_secs(seconds))
    }

    #[test]
    fn time_counts_from_the_last_sending() {
        let times = SentTimes::default();
        times.record([1; 32], after(1));
        assert_eq!(times.elapsed([1; 32], after(5)), Duration::from_secs(4));
        times.record([1; 32], after(9));
        assert_eq!(times.elapsed([1; 32], after(9)), Duration::ZERO);
    }

    #[test]
    fn unknown_transaction_counts_from_when_it_is_seen() {
        let times = SentTimes::default();
        assert_eq!(times.elapsed([1; 32], after(5)), Duration::ZERO);
        assert_eq!(times.elapsed([1; 32], after(8)), Duration::from_secs(3));
    }

    #[test]
    fn number_of_remembered_transactions_is_limited() {
        let times = SentTimes::default();
        for number in 0..=SentTimes::CAPACITY + 1 {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&number.to_be_bytes());
            times.record(hash, after(1));
        }
        assert!(times.0.lock().unwrap().len() <= SentTimes::CAPACITY + 1);
    }
}
