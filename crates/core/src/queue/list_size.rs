use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

/// How many batches of a service may be sent together in one request, conflicting ones in order.
///
/// A list arrives as a whole or not at all, but its batches are applied in order only while one node publishes. The
/// adapter observes that, and the store the losses: the size becomes 1 at a loss, and grows by 1 with each commit.
/// Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ListSize(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    is_open: AtomicBool,
    size: AtomicUsize,
}

impl Default for Shared {
    /// No lists, until an adapter allows them.
    fn default() -> Self {
        Self { is_open: AtomicBool::new(false), size: AtomicUsize::new(ListSize::MOST) }
    }
}

impl ListSize {
    const MOST: usize = 1_000;

    /// The present size, at least 1.
    pub fn get(&self) -> usize {
        if self.0.is_open.load(Relaxed) { self.0.size.load(Relaxed) } else { 1 }
    }

    /// Records whether batches are applied in the order of a list.
    pub fn set_open(&self, is_open: bool) {
        self.0.is_open.store(is_open, Relaxed);
    }

    /// Records that the ledger has committed so many batches.
    pub fn committed(&self, count: usize) {
        let grown = |size: usize| Some(size.saturating_add(count).min(Self::MOST));
        let _ = self.0.size.fetch_update(Relaxed, Relaxed, grown);
    }

    /// Records that the ledger has lost a batch.
    pub fn lost(&self) {
        self.0.size.store(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_shrinks_at_a_loss_and_grows_with_commits() {
        let lists = ListSize::default();
        assert_eq!(lists.get(), 1, "no adapter allows lists");
        lists.set_open(true);
        assert_eq!(lists.get(), ListSize::MOST);
        lists.lost();
        assert_eq!(lists.get(), 1);
        lists.committed(5);
        assert_eq!(lists.get(), 6);
        lists.committed(usize::MAX);
        assert_eq!(lists.get(), ListSize::MOST);
        lists.set_open(false);
        assert_eq!(lists.get(), 1);
    }
}
