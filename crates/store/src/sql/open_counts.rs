use std::{
    collections::{BTreeMap, BTreeSet},
    hash::Hash,
    sync::Mutex,
    time::Duration,
};

use grid_batch_core::MonotonicTime;
use grid_batch_support::{BoundedMap, lock};

use super::StoreError;

/// The number of open items of each client, signer or service, as far as this process knows.
///
/// A count reads all rows that may be open. New items are therefore added to the last count, and the rows are counted
/// again only when the sum reaches the limit, and not too often.
#[derive(Debug)]
pub(crate) struct OpenCounts<K>(Mutex<BoundedMap<K, Counted>>);

#[derive(Debug, Clone, Copy)]
struct Counted {
    open: u64,
    at: MonotonicTime,
}

/// The number for a client, signer or service while batches are added.
#[derive(Debug, Default)]
pub(crate) struct OpenCount {
    known: u64,
    pub(crate) added: u64,
}

impl OpenCount {
    pub(crate) fn present(&self) -> u64 {
        self.known.saturating_add(self.added)
    }
}

/// Limit on the number of keys. If there are more, the oldest are forgotten and later counted again.
const MOST_KEYS: usize = 10_000;

/// The minimum time between two counts, per row that a count may read.
const PAUSE_OF_EACH: Duration = Duration::from_micros(20);

const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl<K: Clone + Eq + Hash> Default for OpenCounts<K> {
    fn default() -> Self {
        Self(Mutex::new(BoundedMap::new(MOST_KEYS)))
    }
}

impl<K: Clone + Eq + Hash + Ord> OpenCounts<K> {
    /// The numbers for these keys, to which items are to be added. Counts rows where necessary.
    pub(crate) fn read(
        &self,
        new: BTreeMap<K, u64>,
        limit: u64,
        now: MonotonicTime,
        count: impl FnOnce(&BTreeSet<K>) -> Result<BTreeMap<K, u64>, StoreError>,
    ) -> Result<BTreeMap<K, OpenCount>, StoreError> {
        let must_be_counted =
            |(key, new): &(&K, &u64)| self.must_be_counted(key, **new, limit, now);
        let to_count: BTreeSet<K> =
            new.iter().filter(must_be_counted).map(|(key, _)| key.clone()).collect();
        if !to_count.is_empty() {
            for (key, open) in count(&to_count)? {
                self.counted(key, open, now);
            }
        }
        let known = |key: K| {
            let known = self.open(&key);
            (key, OpenCount { known, added: 0 })
        };
        Ok(new.into_keys().map(known).collect())
    }

    /// Remembers what was added. If the transaction fails, the next count corrects the number.
    pub(crate) fn keep(&self, counts: &BTreeMap<K, OpenCount>) {
        for (key, count) in counts {
            self.added(key, count.added);
        }
    }

    /// Whether the rows of a client, signer or service must be counted before this many items are added.
    fn must_be_counted(&self, key: &K, new: u64, limit: u64, now: MonotonicTime) -> bool {
        let limit_of_pause = u32::try_from(limit).unwrap_or(u32::MAX);
        let pause = PAUSE_OF_EACH.saturating_mul(limit_of_pause).min(LONGEST_PAUSE);
        match lock(&self.0).get(key) {
            None => true,
            Some(last) => last.open.saturating_add(new) > limit && now.since(last.at) >= pause,
        }
    }

    fn open(&self, key: &K) -> u64 {
        lock(&self.0).get(key).map_or(0, |counted| counted.open)
    }

    fn counted(&self, key: K, open: u64, at: MonotonicTime) {
        let counted = Counted { open, at };
        *lock(&self.0).get_or_insert_with(&key, || counted) = counted;
    }

    fn added(&self, key: &K, more: u64) {
        if let Some(counted) = lock(&self.0).get_mut(key) {
            counted.open = counted.open.saturating_add(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::batches::ClientId;
    use grid_batch_core::{Clock, ManualClock, Timestamp};

    use super::*;

    #[test]
    fn batches_are_counted_when_they_may_exceed_the_limit() {
        let clock = ManualClock::at(Timestamp::from_micros(0));
        let queues = OpenCounts::default();
        let client = ClientId::Token("0123456789abcdef".parse().unwrap());
        let must_be_counted = |new| queues.must_be_counted(&client, new, 100, clock.monotonic());
        assert!(must_be_counted(1), "nothing is known");
        queues.counted(client, 90, clock.monotonic());
        queues.added(&client, 5);
        assert_eq!(queues.open(&client), 95);
        assert!(!must_be_counted(6), "it was counted just now");
        clock.advance(Duration::from_millis(2));
        assert!(must_be_counted(6) && !must_be_counted(5));
    }

    #[test]
    fn pause_between_counts_is_limited() {
        let clock = ManualClock::at(Timestamp::from_micros(0));
        let queues = OpenCounts::default();
        let client = ClientId::Token("0123456789abcdef".parse().unwrap());
        queues.counted(client, 1 << 40, clock.monotonic());
        clock.advance(Duration::from_secs(1));
        assert!(queues.must_be_counted(&client, 1, 1 << 40, clock.monotonic()));
    }
}
