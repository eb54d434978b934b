use std::time::Duration;

use grid_batch_core::{BatchId, MonotonicTime, PollPace};

use crate::request_history::{RequestHistory, Turn};

/// Selects the batches to ask the ledger for, from those that the store returns.
///
/// A store may return the same batches in the same order at each read. So the selection applies the
/// pace itself, and reads further until every pending batch had its turn: one *pass*. A store that
/// returns only due batches, the least recently checked first, is read no further than needed.
#[derive(Debug)]
pub(crate) struct DueBatches {
    history: RequestHistory,
    /// The greatest number of batches to select at once.
    batch_limit: usize,
    /// The number of batches to read from the store. It grows within a pass.
    read_limit: usize,
}

/// The batches that were selected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selection<I> {
    pub(crate) batches: Vec<I>,
    /// Whether more batches are due, or will be when a busy service is free.
    pub(crate) more: bool,
}

impl DueBatches {
    pub(crate) fn new(batch_limit: usize, longest_interval: Duration) -> Self {
        let history = RequestHistory::new(longest_interval);
        Self { history, batch_limit, read_limit: batch_limit }
    }

    /// Selects the batches that are due now. Those of busy services are left for later.
    ///
    /// `read` returns up to as many pending batches as its argument, or `None` if the store failed;
    /// then the result is `None` too.
    pub(crate) fn select<I: BatchId>(
        &mut self,
        now: MonotonicTime,
        pace: PollPace,
        mut read: impl FnMut(usize) -> Option<Vec<I>>,
        is_busy: impl Fn(&str) -> bool,
    ) -> Option<Selection<I>> {
        loop {
            let mut page = Page::new(read(self.read_limit)?, self.read_limit);
            page.retain_due(&self.history, now, pace, &is_busy);
            if page.due.is_empty() && page.is_full {
                self.read_limit = self.read_limit.saturating_mul(2);
                continue;
            }
            let is_cut = page.due.len() > self.batch_limit;
            page.due.truncate(self.batch_limit);
            page.due.iter().for_each(|batch| self.history.record(batch, now));
            let more = page.is_full || page.has_busy || page.has_next_pass || is_cut;
            if !is_cut && page.ends_pass() {
                self.history.start_pass();
                self.read_limit = self.batch_limit;
                if page.due.is_empty() && page.has_next_pass {
                    continue;
                }
            }
            return Some(Selection { batches: page.due, more });
        }
    }

    /// Records that the ledger is asked for these batches, due or not.
    pub(crate) fn record<'a, I: BatchId + 'a>(
        &mut self,
        batches: impl IntoIterator<Item = &'a I>,
        now: MonotonicTime,
    ) {
        batches.into_iter().for_each(|batch| self.history.record(batch, now));
    }

    /// Forgets a batch that has ended or will be submitted again.
    pub(crate) fn forget(&mut self, service_id: &str, batch_id: &str) {
        self.history.forget(service_id, batch_id);
    }
}

/// What one read of the store returned.
struct Page<I> {
    /// Before [`retain_due`](Self::retain_due): all batches. After it: those to ask for.
    due: Vec<I>,
    /// The store may have more batches.
    is_full: bool,
    has_busy: bool,
    /// Some batches wait for the next pass.
    has_next_pass: bool,
    /// The last batch was asked for in this pass.
    ends_in_pass: bool,
}

impl<I: BatchId> Page<I> {
    fn new(batches: Vec<I>, read_limit: usize) -> Self {
        let is_full = batches.len() >= read_limit;
        Self { due: batches, is_full, has_busy: false, has_next_pass: false, ends_in_pass: false }
    }

    fn retain_due(
        &mut self,
        history: &RequestHistory,
        now: MonotonicTime,
        pace: PollPace,
        is_busy: &impl Fn(&str) -> bool,
    ) {
        let (mut has_busy, mut has_next_pass, mut ends_in_pass) = (false, false, false);
        self.due.retain(|batch| {
            if is_busy(batch.get_service_id()) {
                has_busy = true;
                return false;
            }
            ends_in_pass = history.is_in_pass(batch);
            let turn = history.turn(batch, now, pace);
            has_next_pass |= turn == Turn::NextPass;
            turn == Turn::Due
        });
        (self.has_busy, self.has_next_pass, self.ends_in_pass) =
            (has_busy, has_next_pass, ends_in_pass);
    }

    /// Whether every pending batch has had its turn: the store has no more, or it returned batches
    /// of this pass after others, so it returns the least recently checked first.
    fn ends_pass(&self) -> bool {
        !self.is_full || self.ends_in_pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: PollPace =
        PollPace { interval: Duration::from_secs(1), longest: Duration::from_secs(60) };

    /// A batch that is the only one of its service.
    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Batch(String);

    impl BatchId for Batch {
        fn get_id(&self) -> &str {
            &self.0
        }

        fn get_service_id(&self) -> &str {
            &self.0
        }
    }

    fn select(due: &mut DueBatches, store: &[&str], busy: &[&str], seconds: u32) -> (String, bool) {
        let now = MonotonicTime::default().plus(Duration::from_secs(1) * seconds);
        let read = |limit: usize| {
            Some(store.iter().take(limit).map(|id| Batch((*id).to_owned())).collect())
        };
        let selection = due.select(now, PACE, read, |service| busy.contains(&service)).unwrap();
        (selection.batches.into_iter().map(|batch| batch.0).collect(), selection.more)
    }

    fn selected(ids: &str, more: bool) -> (String, bool) {
        (ids.to_owned(), more)
    }

    #[test]
    fn fixed_order_is_read_to_its_end() {
        let mut due = DueBatches::new(2, PACE.longest);
        let store = ["a", "b", "c", "d", "e"];
        assert_eq!(select(&mut due, &store, &[], 0), selected("ab", true));
        assert_eq!(select(&mut due, &store, &[], 0), selected("cd", true));
        assert_eq!(select(&mut due, &store, &[], 0), selected("e", false));
        assert_eq!(select(&mut due, &store, &[], 0), selected("", false));
        assert_eq!(select(&mut due, &store, &[], 1), selected("ab", true));
    }

    #[test]
    fn batches_that_are_due_again_wait_for_the_next_pass() {
        let mut due = DueBatches::new(2, PACE.longest);
        let store = ["a", "b", "c", "d", "e"];
        let all: Vec<String> =
            (0..6).map(|look| select(&mut due, &store, &[], look * 10).0).collect();
        assert_eq!(all, ["ab", "cd", "e", "ab", "cd", "e"]);
    }

    #[test]
    fn batches_of_busy_services_are_left_for_later() {
        let mut due = DueBatches::new(1, PACE.longest);
        let store = ["a", "b"];
        assert_eq!(select(&mut due, &store, &["a"], 0), selected("b", true));
        assert_eq!(select(&mut due, &store, &["a", "b"], 0), selected("", true));
        assert_eq!(select(&mut due, &store, &[], 0), selected("a", true));
    }

    #[test]
    fn pass_ends_in_a_store_with_ever_new_batches() {
        let mut due = DueBatches::new(3, PACE.longest);
        // The least recently checked first: never, then before.
        assert_eq!(select(&mut due, &["a", "b", "c"], &[], 0), selected("abc", true));
        assert_eq!(select(&mut due, &["d", "e", "a"], &[], 60), selected("de", true));
        assert_eq!(select(&mut due, &["f", "a", "b"], &[], 61), selected("fab", true));
    }

    #[test]
    fn failed_read_selects_nothing() {
        let mut due = DueBatches::new(3, PACE.longest);
        let now = MonotonicTime::default();
        assert_eq!(due.select::<Batch>(now, PACE, |_| None, |_| false), None);
    }
}
