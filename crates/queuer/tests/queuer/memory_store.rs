//! Open batches in memory, changed by core's `transition`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use grid_batch_core::batches::{BatchState, DeclaredAccess, Event, Hold, StoredBatch, transition};
use grid_batch_core::ledger::{Outcome, Submission};
use grid_batch_core::queue::TakenBatch;
use grid_batch_core::{
    BatchResult, Clock, ItemId, ManualClock, ServiceId, ServiceScopeId, Timestamp,
};
use grid_batch_queuer::{Dependency, OpenBatchStore, StrategyRoundStore};

/// The store. Clones share the batches.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    pub batches: Arc<Mutex<BTreeMap<ServiceId, Vec<StoredBatch>>>>,
    /// What batches declare. A batch without an entry declares everything.
    pub access: Arc<Mutex<BTreeMap<ItemId, DeclaredAccess>>>,
    /// Whether an invalid batch stops others until it is removed.
    pub halts: bool,
    /// What happens to dependents of an invalid batch. `None`: the ledger has not answered whether it has the
    /// transactions of that batch from another batch.
    pub after_invalid: Option<InvalidDependents>,
    pub clock: Arc<ManualClock>,
}

/// What happens to batches that depend on an invalid one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidDependents {
    End,
    StayOpen,
}

impl MemoryStore {
    /// Adds a batch whose id has this number.
    pub fn add(&self, service: &str, number: u32) {
        let service_id: ServiceId = service.parse().unwrap();
        let mut batches = self.batches();
        let of_service = batches.entry(service_id.clone()).or_default();
        of_service.push(StoredBatch::new(
            service_id,
            id(number),
            Timestamp::from_micros(of_service.len() as i64),
        ));
    }

    /// Adds a batch that declares this. Its transaction has its id.
    pub fn add_with_access(&self, service: &str, number: u32, access: DeclaredAccess) {
        self.access.lock().unwrap().insert(id(number), access);
        self.add(service, number);
    }

    /// Applies an event to the batch with this number.
    pub fn apply(&self, number: u32, event: Event) {
        self.change(id(number), event);
    }

    fn change(&self, batch_id: ItemId, event: Event) {
        let mut batches = self.batches();
        let mut all = batches.values_mut().flatten();
        let batch = all.find(|batch| batch.batch_id == batch_id).unwrap();
        batch.progress = transition(batch.progress, event).unwrap();
    }

    /// Holds a batch.
    pub fn hold(&self, number: u32) {
        let hold =
            Hold { since: self.clock.now(), reason: "test".to_owned(), until_decision: true };
        let mut batches = self.batches();
        let mut all = batches.values_mut().flatten();
        all.find(|batch| batch.batch_id == id(number)).unwrap().held = Some(hold);
    }

    /// Applies an event to the batch of a submission.
    pub fn record(&self, submission: &Submission<ServiceScopeId>, event: fn(u32) -> Event) {
        let delay = Duration::from_secs(15);
        for batch in self.batches().values_mut().flatten() {
            if batch.batch_id.to_string() == submission.batch_header() {
                let event = event(batch.progress.attempts);
                batch.progress = transition(batch.progress, event).unwrap();
                let is_delayed = batch.progress.state == BatchState::Delayed;
                batch.next_try_at = is_delayed.then(|| self.clock.now().plus(delay));
            }
        }
    }

    /// The state of every batch, by service and age.
    pub fn states(&self) -> Vec<BatchState> {
        self.batches().values().flatten().map(|batch| batch.progress.state).collect()
    }

    /// The store as the queue needs it.
    pub fn round_store(&self) -> StrategyRoundStore<Self> {
        StrategyRoundStore::new(self.clone()).with_clock(self.clock.clone())
    }

    fn batches(&self) -> MutexGuard<'_, BTreeMap<ServiceId, Vec<StoredBatch>>> {
        self.batches.lock().unwrap()
    }
}

impl OpenBatchStore for MemoryStore {
    fn services(&self, after: Option<&ServiceId>, limit: usize) -> BatchResult<Vec<ServiceId>> {
        let batches = self.batches();
        let open = batches.iter().filter(|(_, batches)| batches.iter().any(is_open));
        let open = open.map(|(service, _)| service).filter(|id| after.is_none_or(|a| *id > a));
        Ok(open.take(limit).cloned().collect())
    }

    fn open_batches(&self, service_id: &ServiceId, limit: usize) -> BatchResult<Vec<StoredBatch>> {
        let batches = self.batches();
        let of_service = batches.get(service_id).map_or(&[][..], Vec::as_slice);
        let is_new = |batch: &&StoredBatch| batch.progress.state == BatchState::New;
        let stops = |batch: &StoredBatch| self.halts && batch.progress.state == BatchState::Invalid;
        let tried =
            of_service.iter().filter(|batch| !is_new(batch) && (is_open(batch) || stops(batch)));
        let new = of_service.iter().filter(is_new);
        Ok(tried.chain(new).take(limit).cloned().collect())
    }

    fn declared_access(&self, batch: &StoredBatch) -> BatchResult<DeclaredAccess> {
        let declared = self.access.lock().unwrap().get(&batch.batch_id).cloned();
        Ok(declared.unwrap_or_else(DeclaredAccess::everything))
    }

    fn dependency(&self, transaction_id: &ItemId) -> BatchResult<Dependency> {
        let batches = self.batches();
        let found = batches.values().flatten().find(|batch| batch.batch_id == *transaction_id);
        Ok(match found.map(|batch| batch.progress.state) {
            None => Dependency::Missing,
            Some(BatchState::Committed) => Dependency::Applied,
            Some(BatchState::Invalid) if self.after_invalid.is_some() => Dependency::Invalid,
            Some(BatchState::Invalid) => Dependency::Unanswered,
            Some(_) => Dependency::Open(*transaction_id),
        })
    }

    fn batch_length(&self, batch: &StoredBatch) -> BatchResult<usize> {
        Ok(bytes_of(batch.batch_id).len())
    }

    fn end_as_invalid(&self, batch: &StoredBatch, _: &ItemId) -> BatchResult<bool> {
        let ends = self.after_invalid == Some(InvalidDependents::End);
        if ends {
            self.change(batch.batch_id, Event::DependencyInvalid);
        }
        Ok(ends)
    }

    fn mark_submitted(&self, batch: &StoredBatch) -> BatchResult<Option<TakenBatch>> {
        let mut batches = self.batches();
        let of_service = batches.get_mut(&batch.service_id).unwrap();
        let stored =
            of_service.iter_mut().find(|stored| stored.batch_id == batch.batch_id).unwrap();
        if stored.progress != batch.progress {
            return Ok(None);
        }
        stored.progress = transition(stored.progress, Event::Taken).unwrap();
        Ok(Some(TakenBatch {
            service_id: batch.service_id.clone(),
            batch_id: batch.batch_id,
            attempt: stored.progress.attempts,
            epoch: 0,
            serialized_batch: bytes_of(batch.batch_id),
            deadline: None,
            trace: None,
            joins_list: false,
        }))
    }

    fn unmark(&self, taken: &[TakenBatch]) -> BatchResult<()> {
        let mut batches = self.batches();
        for taken in taken {
            let of_service = batches.get_mut(&taken.service_id).unwrap();
            let batch = of_service.iter_mut().find(|b| b.batch_id == taken.batch_id).unwrap();
            let event = Event::Outcome { attempt: taken.attempt, outcome: Outcome::NotSent };
            batch.progress = transition(batch.progress, event).unwrap();
        }
        Ok(())
    }
}

fn is_open(batch: &StoredBatch) -> bool {
    !batch.progress.state.is_terminal()
}

/// The bytes of a batch. Up to [`LARGE`] it is one byte; above that, as many as its number exceeds it.
fn bytes_of(batch_id: ItemId) -> Vec<u8> {
    let number = u32::from_be_bytes(batch_id.as_bytes()[..4].try_into().unwrap());
    vec![1; number.saturating_sub(LARGE).max(1) as usize]
}

/// A batch with a greater number has as many bytes as its number exceeds this.
pub const LARGE: u32 = 1_000_000;

/// The id of a batch. The order of ids is that of their numbers.
pub fn id(number: u32) -> ItemId {
    let mut bytes = [0; 64];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    ItemId::from_bytes(bytes)
}
