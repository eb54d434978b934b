//! What can be read in the log.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

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

static LINES: Lines = Lines(Mutex::new(Vec::new()));

/// Keeps every line, as `LEVEL text key=value ...`.
struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if record.level() <= Level::Info {
            let mut line = format!("{} {}", record.level(), record.args());
            record.key_values().visit(&mut Append(&mut line)).unwrap();
            self.0.lock().unwrap().push(line);
        }
    }

    fn flush(&self) {}
}

struct Append<'a>(&'a mut String);

impl<'kvs> kv::VisitSource<'kvs> for Append<'_> {
    fn visit_pair(&mut self, key: kv::Key<'kvs>, value: kv::Value<'kvs>) -> Result<(), kv::Error> {
        self.0.push_str(&format!(" {key}={value}"));
        Ok(())
    }
}

#[derive(Debug, Clone)]
struct One;

impl BatchId for One {
    fn get_id(&self) -> &str {
        "batch"
    }

    fn get_service_id(&self) -> &str {
        "service"
    }
}

#[test]
fn it_shows_once_when_a_service_or_the_store_begins_to_fail_and_once_when_it_is_well() {
    log::set_logger(&LINES).unwrap();
    log::set_max_level(LevelFilter::Info);
    let mut store = MockPendingBatchStore::new();
    store.expect_get_due_batch_ids().returning(|_, _, _| Ok(vec![One]));
    store.expect_get_pending_batch_ids_of().returning(|_, _| Ok(vec![One]));
    let mut marks = 0;
    store.expect_mark_checked().returning(move |_| {
        marks += 1;
        if marks == 4 { Err(BatchError::Unavailable("full".to_owned())) } else { Ok(()) }
    });
    let mut reader = MockBatchStatusReader::new();
    reader.expect_available_connections().return_const(1_usize);
    let mut asked = 0;
    reader.expect_get_batch_statuses().returning(move |_, _| {
        asked += 1;
        let report = StatusReport {
            batch_id: "batch".to_owned(),
            status: LedgerStatus::Pending,
            receipts: Vec::new(),
        };
        let answer = match asked {
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
        *LINES.0.lock().unwrap(),
        [
            "WARN asking for the batches of a service fails service=service \
             error=not available now: down",
            "INFO asking for the batches of a service is well again service=service failures=3",
            "WARN the store fails; it is tried again error=not available now: full",
            "INFO the store is well again failures=1",
        ]
    );
}
