use std::{
    fmt,
    sync::{Arc, Mutex},
};

use grid_batch_support::lock;

/// Limits the total size of the batches that were taken from the store and whose submissions have not ended.
///
/// A quarter of the limit is reserved for small batches and the rest for large ones, so that a small batch never waits
/// for large ones. A batch that is larger than the part of its size class fits when that class has no other batch.
/// Within a class, a batch does not overtake a waiting one.
#[derive(Clone)]
pub(crate) struct MemoryBudget(Arc<State>);

struct State {
    limit: usize,
    used: Mutex<Used>,
    /// Called when bytes are released for which a round has waited.
    notify: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Used {
    bytes: ByClass<usize>,
    /// How often bytes were released.
    releases: u64,
    /// Whether a batch did not fit since bytes were last released.
    is_awaited: bool,
}

/// A value for each size class.
#[derive(Debug, Clone, Copy, Default)]
struct ByClass<T> {
    small: T,
    large: T,
}

impl<T> ByClass<T> {
    fn of(&mut self, is_small: bool) -> &mut T {
        if is_small { &mut self.small } else { &mut self.large }
    }
}

impl MemoryBudget {
    /// A budget of `limit` bytes that calls `notify` when a batch that did not fit may fit now.
    pub(crate) fn new(limit: usize, notify: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(State { limit, used: Mutex::default(), notify: Box::new(notify) }))
    }

    /// Decides about the batches of one round.
    pub(crate) fn start_round(&self) -> RoundBudget {
        let used = lock(&self.0.used);
        RoundBudget {
            budget: self.clone(),
            used: used.bytes,
            releases: used.releases,
            is_full: ByClass::default(),
        }
    }

    /// Counts the bytes of a batch until the permit is dropped.
    pub(crate) fn count(&self, bytes: usize) -> MemoryPermit {
        *lock(&self.0.used).bytes.of(self.0.is_small(bytes)) += bytes;
        MemoryPermit { budget: self.clone(), bytes }
    }
}

impl State {
    fn is_small(&self, bytes: usize) -> bool {
        bytes <= self.limit / 64
    }

    fn part(&self, is_small: bool) -> usize {
        let for_small = self.limit / 4;
        if is_small { for_small } else { self.limit - for_small }
    }

    /// Notifies if a batch that did not fit may fit now.
    fn release(&self, bytes: usize) {
        let is_awaited = {
            let mut used = lock(&self.used);
            *used.bytes.of(self.is_small(bytes)) -= bytes;
            used.releases += 1;
            std::mem::take(&mut used.is_awaited)
        };
        if is_awaited {
            (self.notify)();
        }
    }
}

/// Decides which batches of one round fit.
pub(crate) struct RoundBudget {
    budget: MemoryBudget,
    /// The bytes in use, with those of the round.
    used: ByClass<usize>,
    /// How often bytes had been released when the round started.
    releases: u64,
    /// Whether a batch of the class did not fit.
    is_full: ByClass<bool>,
}

impl RoundBudget {
    /// Whether a batch of this size fits. If it does, it is counted in this round.
    pub(crate) fn fits(&mut self, bytes: usize) -> bool {
        let state = &self.budget.0;
        let is_small = state.is_small(bytes);
        let used = self.used.of(is_small);
        let total = used.saturating_add(bytes);
        let is_full = self.is_full.of(is_small);
        *is_full |= *used > 0 && total > state.part(is_small);
        if !*is_full {
            *used = total;
        }
        !*is_full
    }

    /// Ends the round. If a batch did not fit, the next release of bytes is notified.
    pub(crate) fn end(self) {
        if !self.is_full.small && !self.is_full.large {
            return;
        }
        let mut used = lock(&self.budget.0.used);
        used.is_awaited = used.releases == self.releases;
        let was_released = !used.is_awaited;
        drop(used);
        if was_released {
            (self.budget.0.notify)();
        }
    }
}

/// The bytes of one batch. Dropping it releases them.
#[derive(Debug)]
pub(crate) struct MemoryPermit {
    budget: MemoryBudget,
    bytes: usize,
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        self.budget.0.release(self.bytes);
    }
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = lock(&self.0.used).bytes;
        f.debug_struct("MemoryBudget").field("limit", &self.0.limit).field("used", &used).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    /// A budget of 6,400 bytes: batches up to 100 bytes are small.
    fn budget() -> (MemoryBudget, Arc<AtomicUsize>) {
        let notified = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&notified);
        let notify = move || {
            counter.fetch_add(1, SeqCst);
        };
        (MemoryBudget::new(6_400, notify), notified)
    }

    /// Which batches of a round fit.
    fn round(budget: &MemoryBudget, sizes: &[usize]) -> Vec<bool> {
        let mut round = budget.start_round();
        let fits = sizes.iter().map(|size| round.fits(*size)).collect();
        round.end();
        fits
    }

    #[test]
    fn round_takes_what_fits() {
        let (budget, _) = budget();
        assert_eq!(round(&budget, &[2_000, 2_000, 1_000, 100]), [true, true, false, true]);
        let _in_flight = budget.count(4_000);
        assert_eq!(round(&budget, &[800, 1]), [true, true]);
        assert_eq!(round(&budget, &[801, 1]), [false, true]);
    }

    #[test]
    fn batch_larger_than_the_limit_goes_alone() {
        let (budget, _) = budget();
        assert_eq!(round(&budget, &[10_000, 200]), [true, false]);
        let in_flight = budget.count(200);
        assert_eq!(round(&budget, &[10_000]), [false]);
        drop(in_flight);
        assert_eq!(round(&budget, &[10_000]), [true]);
    }

    #[test]
    fn batch_does_not_overtake_a_waiting_one_of_its_class() {
        let (budget, _) = budget();
        let _in_flight = budget.count(4_000);
        assert_eq!(round(&budget, &[1_000, 200, 50]), [false, false, true]);
    }

    #[test]
    fn small_batches_are_limited_too() {
        let (budget, _) = budget();
        let fits = round(&budget, &[100; 20]);
        assert_eq!(fits.iter().filter(|fits| **fits).count(), 16);
    }

    #[test]
    fn release_notifies_once_if_a_batch_waits() {
        let (budget, notified) = budget();
        let permits = [budget.count(2_400), budget.count(2_400)];
        assert_eq!(round(&budget, &[50]), [true]);
        assert_eq!(round(&budget, &[1_000]), [false]);
        drop(permits);
        assert_eq!(notified.load(SeqCst), 1);
        drop(budget.count(1_000));
        assert_eq!(notified.load(SeqCst), 1, "nothing waits");
    }

    #[test]
    fn release_during_a_round_is_not_lost() {
        let (budget, notified) = budget();
        let in_flight = budget.count(4_800);
        let mut round = budget.start_round();
        assert!(!round.fits(1_000));
        drop(in_flight);
        assert_eq!(notified.load(SeqCst), 0);
        round.end();
        assert_eq!(notified.load(SeqCst), 1);
    }
}
