use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::claims::SubmittedBatch;
use grid_batch_core::queue::{Admission, RoundStore, TakenBatch};
use grid_batch_core::{BatchResult, ServiceId};
use grid_batch_support::{Job, Jobs, lock};
use grid_batch_work::WorkTable;
use log::info;

use crate::Places;

/// Gives batches back to the store that a pause, a drain or a hold stops after they were taken, unless they are being
/// sent. This is done at once if this instance received the request, and otherwise when the store is next read.
#[derive(Clone)]
pub struct Recall<S> {
    table: WorkTable,
    store: S,
    stopped: Arc<StoppedFn>,
    places: Option<Places>,
    /// One reading of the store at a time.
    reading: Arc<Mutex<()>>,
}

/// Reads those of the taken batches of these services that are stopped.
type StoppedFn = dyn Fn(&[ServiceId]) -> BatchResult<Vec<SubmittedBatch>> + Send + Sync;

/// How often the store is read while batches wait to be sent.
const READ_INTERVAL: Duration = Duration::from_millis(500);

impl<S: RoundStore + Clone + Sync + 'static> Recall<S> {
    /// `stopped` reads from the store which batches of services are stopped. The places of batches that are given back
    /// are returned.
    pub fn new(
        table: WorkTable,
        store: S,
        stopped: impl Fn(&[ServiceId]) -> BatchResult<Vec<SubmittedBatch>> + Send + Sync + 'static,
        places: Option<Places>,
    ) -> Self {
        Self { table, store, stopped: Arc::new(stopped), places, reading: Arc::default() }
    }

    /// Starts the job that reads which batches other instances and commands have stopped.
    pub fn start(&self, jobs: &Jobs) -> Job {
        let recall = self.clone();
        jobs.every("recall", READ_INTERVAL, move || recall.run())
    }

    /// Calls back the batches that are stopped now.
    pub fn run(&self) -> BatchResult<()> {
        let batches = self.call_back()?;
        if batches > 0 {
            info!(batches; "batches were called back before they were sent");
        }
        Ok(())
    }

    fn call_back(&self) -> BatchResult<usize> {
        let _one_at_a_time = lock(&self.reading);
        let services = self.table.lock().services_to_send();
        let stopped = (self.stopped)(&services)?;
        let unsent = self.table.lock().call_back(stopped);
        let unsent: Vec<TakenBatch> = unsent.into_iter().map(TakenBatch::without_bytes).collect();
        if unsent.is_empty() {
            return Ok(0);
        }
        // A batch that cannot be given back now is given back when its submission ends.
        let given_back = self.store.give_back(&unsent);
        if let Some(places) = &self.places {
            unsent.iter().for_each(|batch| places.given_back(batch));
        }
        given_back?;
        Ok(unsent.len())
    }
}
