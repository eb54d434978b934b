//! Batches that an operator stops after they were taken go back to the store, unless they are being sent.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use grid_batch_core::{Admission, BatchResult, InternalError, TakenBatch};
use grid_batch_queuer::Places;
use grid_batch_store::ClaimStore;
use grid_batch_support::{PeriodicThread, lock};
use grid_batch_work::WorkTable;
use log::{info, warn};

/// Calls back what a pause, a drain or a hold stops: at once if this instance was asked for it, and otherwise when
/// the store is read next.
#[derive(Clone)]
pub(super) struct Recall {
    work: WorkTable,
    claims: ClaimStore,
    places: Option<Places>,
    /// One reading of the store at a time.
    reading: Arc<Mutex<()>>,
    has_failed: Arc<AtomicBool>,
}

/// How often the store is read while batches wait to be sent.
const READ_INTERVAL: Duration = Duration::from_millis(500);

impl Recall {
    pub(super) fn new(work: WorkTable, claims: ClaimStore, places: Option<Places>) -> Self {
        Self { work, claims, places, reading: Arc::default(), has_failed: Arc::default() }
    }

    /// Starts the thread that reads what other instances, and commands, have stopped.
    pub(super) fn start(&self) -> Result<PeriodicThread, InternalError> {
        let recall = self.clone();
        PeriodicThread::start("recall", READ_INTERVAL, move || recall.run())
    }

    /// Calls back what is stopped now.
    pub(super) fn run(&self) {
        let called_back = self.call_back();
        let had_failed = self.has_failed.swap(called_back.is_err(), Ordering::Relaxed);
        match called_back {
            Ok(0) => {}
            Ok(batches) => info!(batches; "batches were called back before they were sent"),
            Err(error) if !had_failed => warn!(error:% = error;
                "cannot call back batches that an operator has stopped; it is tried again"),
            Err(_) => {}
        }
    }

    fn call_back(&self) -> BatchResult<usize> {
        let _one_at_a_time = lock(&self.reading);
        let services = self.work.lock().services_to_send();
        let stopped = self.claims.stopped(&services)?;
        let unsent = self.work.lock().call_back(stopped);
        let unsent: Vec<TakenBatch> = unsent.into_iter().map(TakenBatch::without_bytes).collect();
        if unsent.is_empty() {
            return Ok(0);
        }
        // A batch that cannot be given back now is given back when its submission ends.
        let given_back = self.claims.give_back(&unsent);
        if let Some(places) = &self.places {
            unsent.iter().for_each(|batch| places.given_back(batch));
        }
        given_back?;
        Ok(unsent.len())
    }
}
