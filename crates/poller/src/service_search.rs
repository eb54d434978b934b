use std::time::Duration;

use grid_batch_core::BatchId;
use tokio::time::Instant;

use crate::instant::after;

/// Reads from the store, at an interval, which services have pending batches.
///
/// A store may return the same batches in the same order at each read, so a search reads more of them
/// until it has seen the last one. A store that returns only due batches is read once.
#[derive(Debug)]
pub(crate) struct ServiceSearch {
    interval: Duration,
    next: Instant,
    /// The number of batches to read at first.
    batch_limit: usize,
}

impl ServiceSearch {
    pub(crate) fn new(interval: Duration, batch_limit: usize) -> Self {
        Self { interval, next: Instant::now(), batch_limit }
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// When the next search is due, if it is at most an interval away.
    pub(crate) fn next(&self, now: Instant) -> Instant {
        self.next.min(after(now, self.interval))
    }

    pub(crate) fn ended(&mut self, now: Instant) {
        self.next = after(now, self.interval);
    }

    /// Calls `found` with the service of each pending batch. Returns whether the search came to its
    /// end.
    ///
    /// `read` returns up to as many pending batches as its argument, or `None` if the store failed.
    pub(crate) fn search<I: BatchId>(
        &self,
        mut read: impl FnMut(usize) -> Option<Vec<I>>,
        mut found: impl FnMut(&str),
    ) -> bool {
        let mut limit = self.batch_limit;
        loop {
            let Some(batches) = read(limit) else { return false };
            batches.iter().for_each(|batch| found(batch.get_service_id()));
            if batches.len() < limit {
                return true;
            }
            limit = limit.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch that is the only one of its service.
    #[derive(Debug, Clone)]
    struct Batch(String);

    impl BatchId for Batch {
        fn get_id(&self) -> &str {
            &self.0
        }

        fn get_service_id(&self) -> &str {
            &self.0
        }
    }

    #[test]
    fn store_with_a_fixed_order_is_read_to_its_end() {
        let store = ["a", "b", "c", "d", "e"];
        let search = ServiceSearch::new(Duration::from_secs(1), 2);
        let (mut limits, mut found) = (Vec::new(), Vec::new());
        let read = |limit: usize| {
            limits.push(limit);
            Some(store.iter().take(limit).map(|id| Batch((*id).to_owned())).collect())
        };
        assert!(search.search(read, |service| found.push(service.to_owned())));
        assert_eq!(limits, [2, 4, 8]);
        assert!(store.iter().all(|service| found.iter().any(|other| other == service)));
    }

    #[test]
    fn search_is_due_again_after_the_interval_unless_it_failed() {
        let second = Duration::from_secs(1);
        let mut search = ServiceSearch::new(second, 2);
        let now = Instant::now();
        assert!(search.is_due(now));
        assert!(!search.search(|_| None::<Vec<Batch>>, |_| ()));
        assert!(search.is_due(now));
        search.ended(now);
        assert!(!search.is_due(now) && search.is_due(now + second));
        assert_eq!(search.next(now), now + second);
    }
}
