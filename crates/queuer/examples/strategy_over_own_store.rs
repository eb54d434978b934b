//! A queue over an importer's own store.
//!
//! The store is a map in memory that knows only the open batches of each service. The adapter
//! `StrategyRoundStore` applies the one-round serial strategy to it. The loop of `main` stands for a
//! submitter and a poller. Run it with `cargo run -p grid-batch-queuer --example strategy_over_own_store`.

use std::{
    collections::BTreeMap,
    error::Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use grid_batch_core::batches::{BatchState, Event, LedgerStatus, StoredBatch, transition};
use grid_batch_core::ledger::{Outcome, Submission};
use grid_batch_core::queue::TakenBatch;
use grid_batch_core::{
    BatchError, BatchResult, ItemId, ScopeId, ServiceId, ServiceScopeId, Timestamp,
};
use grid_batch_queuer::{BatchQueue, OpenBatchStore, QueueOptions, StrategyRoundStore, WakeUp};

/// The store. Clones share the batches.
#[derive(Debug, Clone, Default)]
struct OwnStore(Arc<Mutex<BTreeMap<ServiceId, Vec<StoredBatch>>>>);

impl OwnStore {
    fn batches(&self) -> MutexGuard<'_, BTreeMap<ServiceId, Vec<StoredBatch>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, service_id: ServiceId, number: u8) {
        self.batches().entry(service_id.clone()).or_default().push(StoredBatch::new(
            service_id,
            ItemId::from_bytes([number; 64]),
            Timestamp::from_micros(number.into()),
        ));
    }

    /// Applies events to a batch, and removes it if it has ended.
    fn record(&self, batch: &BatchKey, events: &[Event]) -> BatchResult<()> {
        let mut batches = self.batches();
        let of_service = batches.entry(batch.service_id.clone()).or_default();
        if let Some(stored) = of_service.iter_mut().find(|b| b.batch_id == batch.batch_id) {
            for event in events {
                stored.progress = transition(stored.progress, *event).map_err(not_possible)?;
            }
        }
        of_service.retain(|batch| !batch.progress.state.is_terminal());
        Ok(())
    }
}

/// The bytes of each batch.
const BYTES: &[u8] = b"the bytes of the batch";

/// What identifies a batch.
#[derive(Debug)]
struct BatchKey {
    service_id: ServiceId,
    batch_id: ItemId,
}

impl OpenBatchStore for OwnStore {
    fn services(&self, after: Option<&ServiceId>, limit: usize) -> BatchResult<Vec<ServiceId>> {
        let batches = self.batches();
        let services = batches.iter().filter(|(_, batches)| !batches.is_empty());
        let services = services.map(|(service_id, _)| service_id);
        let services = services.filter(|id| after.is_none_or(|after| *id > after));
        Ok(services.take(limit).cloned().collect())
    }

    fn open_batches(&self, service_id: &ServiceId, limit: usize) -> BatchResult<Vec<StoredBatch>> {
        let mut open = self.batches().get(service_id).cloned().unwrap_or_default();
        open.sort_by_key(|batch| (batch.progress.state == BatchState::New, batch.created_at));
        open.truncate(limit);
        Ok(open)
    }

    fn batch_length(&self, _: &StoredBatch) -> BatchResult<usize> {
        Ok(BYTES.len())
    }

    fn mark_submitted(&self, batch: &StoredBatch) -> BatchResult<Option<TakenBatch>> {
        let mut batches = self.batches();
        let of_service = batches.entry(batch.service_id.clone()).or_default();
        let unchanged = of_service
            .iter_mut()
            .find(|stored| stored.batch_id == batch.batch_id && stored.progress == batch.progress);
        let Some(stored) = unchanged else { return Ok(None) };
        stored.progress = transition(stored.progress, Event::Taken).map_err(not_possible)?;
        Ok(Some(TakenBatch {
            service_id: batch.service_id.clone(),
            batch_id: batch.batch_id,
            attempt: stored.progress.attempts,
            epoch: 0,
            serialized_batch: BYTES.to_vec(),
            deadline: None,
        }))
    }

    fn unmark(&self, taken: &[TakenBatch]) -> BatchResult<()> {
        taken.iter().try_for_each(|taken| {
            let key = BatchKey { service_id: taken.service_id.clone(), batch_id: taken.batch_id };
            let outcome = Outcome::NotSent;
            self.record(&key, &[Event::Outcome { attempt: taken.attempt, outcome }])
        })
    }
}

fn not_possible(error: impl Error) -> BatchError {
    BatchError::InternalError(error.to_string())
}

fn main() -> Result<(), Box<dyn Error>> {
    let store = OwnStore::default();
    for number in 0..9 {
        store.add(format!("circuit::service-{}", number % 3).parse()?, number);
    }

    // A submitter would be woken here, to poll the queue.
    let wake_up = WakeUp::new(|| ());
    let round_store = StrategyRoundStore::new(store.clone());
    let queue: BatchQueue<ServiceScopeId, _> =
        BatchQueue::new(round_store, wake_up.clone(), QueueOptions::default());

    // The queue ends when no service has a batch to submit.
    for submission in queue {
        let key = key_of(&submission)?;
        println!("{} of {}", &submission.batch_header()[..8], key.service_id);
        let attempt = submission.attempt_id().map_or(1, |id| id.attempt);
        let accepted = Event::Outcome { attempt, outcome: Outcome::Accepted };
        store.record(&key, &[accepted, Event::status(LedgerStatus::Committed)])?;
        wake_up.wake(key.service_id);
    }
    Ok(())
}

fn key_of(submission: &Submission<ServiceScopeId>) -> Result<BatchKey, Box<dyn Error>> {
    let service_id = submission.scope_id().service_id().clone();
    Ok(BatchKey { service_id, batch_id: submission.batch_header().parse()? })
}
