use std::time::Duration;

use grid_batch_core::BatchResult;
use grid_batch_core::polling::LARGEST_PENDING_LIMIT;
use tokio::time::Instant;

use crate::instant::after;

/// A search pauses for at least this many times as long as it took.
const PAUSE_FACTOR: u32 = 4;

/// When to search the store for services with pending batches, which is done at an interval.
#[derive(Debug)]
pub(crate) struct ServiceSearch {
    interval: Duration,
    next: Instant,
}

impl ServiceSearch {
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, next: Instant::now() }
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// When the next search is due, if it is at most an interval away.
    pub(crate) fn next(&self, now: Instant) -> Instant {
        self.next.min(after(now, self.interval))
    }

    /// Records that a search has ended and took this long.
    pub(crate) fn ended(&mut self, now: Instant, took: Duration) {
        self.next = after(now, self.interval.max(pause_after(took)));
    }
}

/// How long to wait after a read of many batches that took this long.
pub(crate) fn pause_after(took: Duration) -> Duration {
    took.saturating_mul(PAUSE_FACTOR)
}

/// Reads all batches that a store has. `read` returns up to as many batches as its argument; `None`: the store does not
/// support this read.
///
/// A store may return the same batches in the same order at each read, and cannot be asked for those after them. The
/// limit is therefore doubled until the store has no more.
pub(crate) fn read_to_end<I>(
    first_limit: usize,
    mut read: impl FnMut(usize) -> BatchResult<Option<Vec<I>>>,
) -> BatchResult<Option<Vec<I>>> {
    let mut limit = first_limit.min(LARGEST_PENDING_LIMIT);
    loop {
        let found = read(limit)?;
        let may_have_more = found.as_ref().is_some_and(|batches| batches.len() == limit);
        if !may_have_more || limit == LARGEST_PENDING_LIMIT {
            return Ok(found);
        }
        limit = limit.saturating_mul(2).min(LARGEST_PENDING_LIMIT);
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::BatchError;

    use super::*;

    #[test]
    fn store_with_a_fixed_order_is_read_to_its_end() {
        let store = ["a", "b", "c", "d", "e"];
        let mut limits = Vec::new();
        let found = read_to_end(2, |limit| {
            limits.push(limit);
            Ok(Some(store.into_iter().take(limit).collect()))
        });
        assert_eq!(found, Ok(Some(store.to_vec())));
        assert_eq!(limits, [2, 4, 8]);
    }

    #[test]
    fn limits_fit_the_integers_of_databases() {
        let mut last = 0;
        let found = read_to_end(usize::MAX / 2, |limit| {
            last = limit;
            Ok(Some(vec![(); limit]))
        });
        assert_eq!((found.unwrap().unwrap().len(), last), (LARGEST_PENDING_LIMIT, 0x7fff_ffff));
    }

    #[test]
    fn failed_and_missing_reads_end_at_once() {
        let error = BatchError::Unavailable("down".to_owned());
        assert_eq!(read_to_end::<()>(2, |_| Err(error.clone())), Err(error));
        assert_eq!(read_to_end::<()>(2, |_| Ok(None)), Ok(None));
    }

    #[test]
    fn search_is_due_again_after_the_interval() {
        let second = Duration::from_secs(1);
        let mut search = ServiceSearch::new(second);
        let now = Instant::now();
        assert!(search.is_due(now));
        search.ended(now, Duration::ZERO);
        assert!(!search.is_due(now) && search.is_due(now + second));
        assert_eq!(search.next(now), now + second);
    }

    #[test]
    fn long_searches_pause_for_longer() {
        let second = Duration::from_secs(1);
        let mut search = ServiceSearch::new(second);
        let now = Instant::now();
        search.ended(now, second);
        assert!(!search.is_due(now + second * 3) && search.is_due(now + second * 4));
    }
}
