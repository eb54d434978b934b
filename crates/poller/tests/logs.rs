//! What the polling monitor logs.
#![expect(clippy::unwrap_used, reason = "tests unwrap what must succeed")]

use std::{
    future::ready,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::{
    BatchError, BatchId, LedgerStatus, ShutdownHandle, StatusReport,
    mocks::{MockBatchStatusReader, MockBatchUpdater, MockPendingBatchStore},
};
use grid_batch_poller::{MonitorOptions, PollingMonitorBuilder};
use log::{Level, LevelFilter, Log, Metadata, Record, kv};

static LOG: RecordingLog = RecordingLog(Mutex::new(Vec::new()));

/// Records every line as `LEVEL text key=value ...`.
struct RecordingLog(Mutex<Vec<String>>);

impl Log for RecordingLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if record.level() <= Level::Info {
            let mut line = format!("{} {}", record.level(), record.args());
            record.key_values().visit(&mut AppendPairs(&mut line)).unwrap();
            self.0.lock().unwrap().push(line);
        }
    }

    fn flush(&self) {}
}

/// Appends key-value pairs to a line.
struct AppendPairs<'a>(&'a mut String);

impl<'kvs> kv::VisitSource<'kvs> for AppendPairs<'_> {
    fn visit_pair(&mut self, key: kv::Key<'kvs>, value: kv::Value<'kvs>) -> Result<(), kv::Error> {
        self.0.push_str(&format!(" {key}={value}"));
        Ok(())
    }
}

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
    log::set_logger(&LOG).unwrap();
    log::set_max_level(LevelFilter::Info);
    let mut store = MockPendingBatchStore::new();
    store.expect_get_due_batch_ids().returning(|_, _, _| Ok(vec![OnlyBatch]));
    store.expect_get_pending_batch_ids_of().returning(|_, _| Ok(vec![OnlyBatch]));
    let mut marks = 0;
    store.expect_mark_checked().returning(move |_| {
        marks += 1;
        if marks == 4 { Err(BatchError::Unavailable("full".to_owned())) } else { Ok(()) }
    });
    let mut reader = MockBatchStatusReader::new();
    reader.expect_available_connections().return_const(1_usize);
    let mut requests = 0;
    reader.expect_get_batch_statuses().returning(move |_, _| {
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
        .with_reader(Arc::new(reader))
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
        *LOG.0.lock().unwrap(),
        [
            "WARN status requests fail service=service error=not available now: down",
            "INFO status requests succeed again service=service failures=3",
            "WARN the store failed; it is retried with increasing delays \
             error=not available now: full",
            "INFO the store works again failures=1",
        ]
    );
}
