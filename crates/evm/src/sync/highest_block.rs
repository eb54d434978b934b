use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use grid_batch_core::MonotonicTime;
use grid_batch_support::lock;

/// The highest block that has confirmed a withdrawal, as far as this process knows. A node that does not have it is not
/// up to date.
#[derive(Debug, Default)]
pub(crate) struct HighestBlock {
    seen: AtomicU64,
    /// The number that was last stored, and when.
    stored: Mutex<Option<(u64, MonotonicTime)>>,
}

impl HighestBlock {
    /// The minimum time between two stores. After a restart, a node that is a few blocks behind is thus noticed later,
    /// but one that has just begun to sync is still noticed.
    const STORE_INTERVAL: Duration = Duration::from_secs(30);

    pub(crate) fn see(&self, number: u64) {
        self.seen.fetch_max(number, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// The number to store now, if it is higher than the stored one and that one is old enough.
    pub(crate) fn take_to_store(&self, now: MonotonicTime) -> Option<u64> {
        let number = self.get();
        let mut stored = lock(&self.stored);
        let is_due = stored
            .is_none_or(|(before, at)| number > before && now.since(at) >= Self::STORE_INTERVAL);
        (is_due && number > 0).then(|| {
            *stored = Some((number, now));
            number
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_secs(seconds))
    }

    #[test]
    fn lower_number_changes_nothing() {
        let highest = HighestBlock::default();
        highest.see(7);
        highest.see(5);
        assert_eq!(highest.get(), 7);
    }

    #[test]
    fn higher_number_is_stored_now_and_then() {
        let highest = HighestBlock::default();
        assert_eq!(highest.take_to_store(at(0)), None, "no block was seen");
        highest.see(7);
        assert_eq!(highest.take_to_store(at(0)), Some(7));
        assert_eq!(highest.take_to_store(at(60)), None, "it is stored already");
        highest.see(8);
        assert_eq!(highest.take_to_store(at(60)), Some(8));
        highest.see(9);
        assert_eq!(highest.take_to_store(at(89)), None);
        assert_eq!(highest.take_to_store(at(90)), Some(9));
    }
}
