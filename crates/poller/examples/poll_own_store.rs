//! A polling monitor over an importer's own store.
//!
//! The store is a list in memory that implements only the required methods. The monitor itself decides when to poll.
//! Run it with `cargo run -p grid-batch-poller --example poll_own_store`.

use std::{
    error::Error,
    future::{Future, ready},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use grid_batch_core::BatchResult;
use grid_batch_core::batches::{LedgerStatus, StatusReport};
use grid_batch_core::polling::{BatchId, BatchUpdater, PendingBatchStore};
use grid_batch_poller::{BatchStatusReader, MonitorOptions, PollingMonitorBuilder, ShutdownHandle};

const SERVICES: usize = 4;

#[derive(Debug, Clone)]
struct Row {
    service_id: String,
    batch_id: String,
    status: LedgerStatus,
}

/// The store names a pending batch by its row.
impl BatchId for Row {
    fn get_id(&self) -> &str {
        &self.batch_id
    }

    fn get_service_id(&self) -> &str {
        &self.service_id
    }
}

/// The store. Clones share the rows.
#[derive(Debug, Clone)]
struct OwnStore(Arc<Mutex<Vec<Row>>>);

impl OwnStore {
    fn new() -> Self {
        let row = |number: usize| Row {
            service_id: format!("service-{number}"),
            batch_id: format!("batch-{number}"),
            status: LedgerStatus::Pending,
        };
        Self(Arc::new(Mutex::new((0..SERVICES).map(row).collect())))
    }

    fn rows(&self) -> MutexGuard<'_, Vec<Row>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_pending_batches(&self) -> bool {
        self.rows().iter().any(|row| row.status == LedgerStatus::Pending)
    }
}

impl PendingBatchStore for OwnStore {
    type Id = Row;

    fn get_pending_batch_ids(&self, limit: usize) -> BatchResult<Vec<Row>> {
        let rows = self.rows();
        let pending = rows.iter().filter(|row| row.status == LedgerStatus::Pending);
        Ok(pending.take(limit).cloned().collect())
    }
}

impl BatchUpdater for OwnStore {
    type Status = StatusReport;

    fn update_batch_statuses(&self, service_id: &str, reports: &[StatusReport]) -> BatchResult<()> {
        let mut rows = self.rows();
        for report in reports {
            println!("{service_id}: {} is {:?}", report.batch_id, report.status);
            if let Some(row) = rows.iter_mut().find(|row| row.batch_id == report.batch_id) {
                row.status = report.status;
            }
        }
        Ok(())
    }
}

/// The adapter: an in-process ledger that reports a batch as committed at the third request.
#[derive(Debug, Default)]
struct SlowLedger {
    requests: Mutex<Vec<String>>,
}

impl BatchStatusReader for SlowLedger {
    type Status = StatusReport;

    fn get_batch_statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> Pin<Box<dyn Future<Output = BatchResult<Vec<StatusReport>>> + Send + 'a>> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.push(service_id.to_owned());
        let count = requests.iter().filter(|service| *service == service_id).count();
        let status = if count < 3 { LedgerStatus::Pending } else { LedgerStatus::Committed };
        let report =
            |id: &String| StatusReport { batch_id: id.clone(), status, receipts: Vec::new() };
        Box::pin(ready(Ok(batch_ids.iter().map(report).collect())))
    }

    fn available_connections(&self) -> usize {
        2
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let store = OwnStore::new();
    let poll_interval = Duration::from_millis(50);
    let running = PollingMonitorBuilder::new()
        .with_store(store.clone())
        .with_updater(store.clone())
        .with_reader(Arc::new(SlowLedger::default()))
        .with_options(MonitorOptions { poll_interval, ..MonitorOptions::default() })
        .build()?
        .run()?;

    // An event of the ledger would trigger a poll like this one.
    running.trigger().trigger("service-3");
    while store.has_pending_batches() {
        thread::sleep(Duration::from_millis(10));
    }
    let stats = running.stats();
    running.wait_for_shutdown()?;
    println!("{} status requests, {} statuses written", stats.requests, stats.written);
    Ok(())
}
