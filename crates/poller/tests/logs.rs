//! What the polling monitor logs.

use std::{future::ready, sync::Arc, time::Duration};

use grid_batch_core::BatchError;
use grid_batch_core::batches::{LedgerStatus, StatusReport};
use grid_batch_core::mocks::{MockBatchUpdater, MockLedger, MockPendingBatchStore};
use grid_batch_core::polling::BatchId;
use grid_batch_poller::{
    LedgerStatusReader, MonitorOptions, PollingMonitorBuilder, ShutdownHandle,
};
use grid_batch_test_support::log_lines::RecordingLog;

static LOG: RecordingLog = RecordingLog::new();

#[derive(Debug, Clone)]
struct OnlyBatch;

impl BatchId for OnlyBatch {
    fn get_id(&self) -> &str {
        "batch"
    }

    fn get_service_id(&self) -> &str {
        "service"
    }
}

#[test]
fn failure_and_recovery_are_logged_once_each() {
    LOG.install();
    let mut store = MockPendingBatchStore::new();
    store.expect_get_due_batch_ids().returning(|_, _, _| Ok(Some(vec![OnlyBatch])));
    store.expect_get_pending_batch_ids_of().returning(|_, _| Ok(Some(vec![OnlyBatch])));
    let mut marks = 0;
    store.expect_mark_checked().returning(move |_| {
        marks += 1;
        if marks == 4 { Err(BatchError::Unavailable("full".to_owned())) } else { Ok(()) }
    });
    let mut ledger = MockLedger::new();
    let mut requests = 0;
    ledger.expect_statuses().returning(move |_, _| {
        requests += 1;
        let report = StatusReport {
            batch_id: "batch".to_owned(),
            status: LedgerStatus::Pending,
            receipts: Vec::new(),
        };
        let answer = match requests {
            ..4 => Err(BatchError::Unavailable("down".to_owned())),
            4 => Ok(Vec::new()),
            _ => Ok(vec![report]),
        };
        Box::pin(ready(answer))
    });
    let mut updater = MockBatchUpdater::new();
    updater.expect_update_groups().returning(|_| Ok(()));

    let short = Duration::from_millis(1);
    let running = PollingMonitorBuilder::new()
        .with_store(store)
        .with_updater(updater)
        .with_reader(Arc::new(LedgerStatusReader(Arc::new(ledger))))
        .with_options(MonitorOptions {
            poll_interval: short,
            trigger_gap: short,
            ..MonitorOptions::default()
        })
        .build()
        .unwrap()
        .run()
        .unwrap();
    while running.stats().written < 3 {
        std::thread::yield_now();
    }
    running.wait_for_shutdown().unwrap();
    assert_eq!(
        LOG.lines(),
        [
            "WARN status requests fail service=service error=not available now: down",
            "INFO status requests succeed again service=service failures=3",
            "WARN the store failed; it is retried with increasing delays \
             error=not available now: full",
            "INFO the store works again failures=1",
        ]
    );
}
