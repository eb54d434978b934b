use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard},
};

use grid_batch_core::ledger::{CommitHistory, CommittedBefore, HistoryFacts};
use grid_batch_core::{BatchResult, ItemId, ServiceId};

use crate::batches::id;

/// What a store knows about the batches that the service of the tests has committed.
#[derive(Default)]
pub struct MemoryHistory(Mutex<Known>);

#[derive(Default)]
struct Known {
    facts: HistoryFacts,
    applied: HashSet<ItemId>,
    generation: i64,
    reads: usize,
}

impl MemoryHistory {
    pub fn new(is_known: Option<bool>) -> Arc<Self> {
        let history = Arc::new(Self::default());
        history.lock().facts.is_known = is_known;
        history
    }

    /// Records that the history was known when this batch was committed and the next one was sent.
    pub fn set_anchor(&self, number: u32) {
        self.lock().facts.anchor = Some(id(number).parse().unwrap());
    }

    /// Sets whether the batch in question is declared as new.
    pub fn set_new(&self, is_new: bool) {
        self.lock().facts.is_new = is_new;
    }

    /// Makes the store go back, so that nothing is known any more.
    pub fn restore(&self) {
        let mut known = self.lock();
        known.generation += 1;
        known.facts = HistoryFacts::default();
    }

    pub fn is_known(&self) -> Option<bool> {
        self.lock().facts.is_known
    }

    pub fn reads(&self) -> usize {
        self.lock().reads
    }

    pub fn has_applied(&self, transaction: &str) -> bool {
        self.lock().applied.contains(&transaction.parse().unwrap())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap()
    }
}

impl CommitHistory for MemoryHistory {
    fn committed_before(&self, _: &ServiceId, _: &ItemId) -> BatchResult<CommittedBefore> {
        Ok(CommittedBefore::default())
    }

    fn has_committed(&self, _: &ServiceId) -> BatchResult<bool> {
        Ok(false)
    }

    fn refuse_past_transactions(&self) {}

    fn read_history(&self, _: &ServiceId, _: &ItemId) -> BatchResult<HistoryFacts> {
        let mut known = self.lock();
        known.reads += 1;
        Ok(known.facts)
    }

    fn is_history_known(&self, _: &ServiceId) -> BatchResult<Option<bool>> {
        Ok(self.is_known())
    }

    fn set_history_known(&self, _: &[ServiceId], is_known: bool) -> BatchResult<()> {
        self.lock().facts.is_known = Some(is_known);
        Ok(())
    }

    fn add_applied(&self, _: &ServiceId, transactions: &[ItemId]) -> BatchResult<()> {
        self.lock().applied.extend(transactions);
        Ok(())
    }

    fn generation(&self) -> i64 {
        self.lock().generation
    }
}
