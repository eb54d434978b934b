//! Batches that an operator stops after they were taken go back to the store, unless they are being sent.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::{Admission, BatchResult, RoundStore, TakenBatch};
use grid_batch_queuer::Places;
use grid_batch_store::ClaimStore;
use grid_batch_support::{Job, Jobs, lock};
use grid_batch_work::WorkTable;
use log::info;

/// Calls back what a pause, a drain or a hold stops: at once if this instance was asked for it, and otherwise when
/// the store is read next.
#[derive(Clone)]
pub(super) struct Recall {
    table: WorkTable,
    claims: ClaimStore,
    places: Option<Places>,
    /// One reading of the store at a time.
    reading: Arc<Mutex<()>>,
}

/// How often the store is read while batches wait to be sent.
const READ_INTERVAL: Duration = Duration::from_millis(500);

impl Recall {
    pub(super) fn new(table: WorkTable, claims: ClaimStore, places: Option<Places>) -> Self {
        Self { table, claims, places, reading: Arc::default() }
    }

    /// Starts the job that reads what other instances, and commands, have stopped.
    pub(super) fn start(&self, jobs: &Jobs) -> Job {
        let recall = self.clone();
        jobs.every("recall", READ_INTERVAL, move || recall.run())
    }

    /// Calls back what is stopped now.
    pub(super) fn run(&self) -> BatchResult<()> {
        let batches = self.call_back()?;
        if batches > 0 {
            info!(batches; "batches were called back before they were sent");
        }
        Ok(())
    }

    fn call_back(&self) -> BatchResult<usize> {
        let _one_at_a_time = lock(&self.reading);
        let services = self.table.lock().services_to_send();
        let stopped = self.claims.stopped(&services)?;
        let unsent = self.table.lock().call_back(stopped);
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
