use std::time::Duration;

use grid_batch_core::MonotonicTime;

use crate::memory::Memory;

/// How long ago transactions were sent, by the monotonic clock.
///
/// The stored time of sending is not compared with the time of day, which may have been set meanwhile. For a
/// transaction that was sent by another process or was forgotten, time counts from when it was first seen.
#[derive(Debug, Default)]
pub(crate) struct SentTimes(Memory<[u8; 32], Option<MonotonicTime>>);

impl SentTimes {
    /// Records that a transaction is sent now.
    pub(crate) fn record(&self, hash: [u8; 32], now: MonotonicTime) {
        self.0.with(&hash, |sent| *sent = Some(now));
    }

    /// How long ago the transaction was sent.
    pub(crate) fn elapsed(&self, hash: [u8; 32], now: MonotonicTime) -> Duration {
        self.0.with(&hash, |sent| now.since(*sent.get_or_insert(now)))
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
}
