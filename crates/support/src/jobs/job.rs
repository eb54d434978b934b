use std::{
    fmt,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};

use grid_batch_core::InternalError;

use super::{OwnRuntime, records::JobRecord};
use crate::{Panic, Shutdown, ShutdownHandle, lock};

/// A running job. Dropping it requests its end without waiting for it.
#[must_use = "dropping a job ends it"]
pub struct Job<T = ()> {
    name: &'static str,
    shutdown: Shutdown,
    end: Mutex<Receiver<T>>,
    /// Keeps the runtime until the job has ended.
    _runtime: Option<Arc<OwnRuntime>>,
}

/// What a job holds until it ends.
pub(super) struct JobEnd<T> {
    record: JobRecord,
    shutdown: Shutdown,
    sender: SyncSender<T>,
    runtime: Option<Arc<OwnRuntime>>,
}

impl<T> Job<T> {
    pub(super) fn new(
        record: JobRecord,
        shutdown: Shutdown,
        runtime: Option<Arc<OwnRuntime>>,
    ) -> (Self, JobEnd<T>) {
        let (sender, end) = sync_channel(1);
        let job = Self {
            name: record.name(),
            shutdown: shutdown.clone(),
            end: Mutex::new(end),
            _runtime: runtime.clone(),
        };
        (job, JobEnd { record, shutdown, sender, runtime })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Requests the end, waits for it, and returns what the job returned.
    pub fn join(self) -> Result<T, InternalError> {
        self.shutdown.request();
        let panicked = |_| InternalError::new(format!("the job {} panicked", self.name));
        lock(&self.end).recv().map_err(panicked)
    }

    /// Requests the end and waits for it up to this limit, because the job may be waiting for a database.
    pub fn stop_within(self, limit: Duration) {
        self.shutdown.request();
        let _ = lock(&self.end).recv_timeout(limit);
    }
}

impl<T> JobEnd<T> {
    pub(super) fn send(self, result: Result<T, Panic>) {
        self.record.job_ended(self.shutdown.is_requested(), result.as_ref().err());
        // If the receiver still exists, it ends the runtime.
        drop(self.runtime);
        if let Ok(value) = result {
            let _ = self.sender.send(value);
        }
    }
}

impl<T> ShutdownHandle for Job<T> {
    fn signal_shutdown(&mut self) -> Result<(), InternalError> {
        self.shutdown.request();
        Ok(())
    }

    fn wait_for_shutdown(self) -> Result<(), InternalError> {
        self.join().map(drop)
    }
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        self.shutdown.request();
    }
}

impl<T> fmt::Debug for Job<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("name", &self.name).finish_non_exhaustive()
    }
}
