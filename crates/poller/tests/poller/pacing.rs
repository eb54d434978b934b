//! The pace of polling with a store that implements only the required method.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use grid_batch_core::batches::{LedgerStatus, StatusReport};
use grid_batch_core::polling::{BatchUpdater, PendingBatchStore};
use grid_batch_core::{BatchResult, Clock, ManualClock, Timestamp};
use grid_batch_poller::{MonitorOptions, ShutdownHandle};
use tokio::sync::Semaphore;

use crate::support::*;

const SERVICES: usize = 1_500;
const BATCH_LIMIT: usize = 1_000;

/// A store with one pending batch of each service, which it always returns in the same order.
#[derive(Clone)]
struct MinimalStore {
    clock: Arc<ManualClock>,
    /// The number of reads so far.
    reads: Arc<WatchedValue<usize>>,
    /// How far the clock advances at each read.
    time_per_read: Duration,
}

impl MinimalStore {
    fn new(time_per_read: Duration) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000_000_000)));
        Self { clock, reads: Arc::default(), time_per_read }
    }

    fn run(&self, ledger: &Arc<Ledger>) -> Running {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&self.clock);
        let options = MonitorOptions { batch_limit: BATCH_LIMIT, ..options() };
        run(self.builder(ledger).with_clock(clock).with_options(options))
    }

    fn builder(&self, ledger: &Arc<Ledger>) -> Builder {
        Builder::new()
            .with_store(self.clone())
            .with_updater(self.clone())
            .with_reader(Arc::<Ledger>::clone(ledger))
    }

    #[track_caller]
    fn wait_for_reads(&self, count: usize) {
        let before = self.reads.get();
        self.reads.wait_until(|reads| *reads >= before + count);
    }
}

impl PendingBatchStore for MinimalStore {
    type Id = Pending;

    fn get_pending_batch_ids(&self, limit: usize) -> BatchResult<Vec<Pending>> {
        self.reads.change(|reads| *reads += 1);
        self.clock.advance(self.time_per_read);
        let pending = |number| Pending {
            service: format!("service-{number}"),
            id: batch(number),
            held: false,
        };
        Ok((0..SERVICES.min(limit)).map(pending).collect())
    }
}

impl BatchUpdater for MinimalStore {
    type Status = StatusReport;

    fn update_batch_statuses(&self, _: &str, _: &[StatusReport]) -> BatchResult<()> {
        Ok(())
    }
}

/// The number of requested services, and the minimum and maximum number of requests for one.
fn requests_per_service(ledger: &Ledger) -> (usize, usize, usize) {
    let requests: BTreeMap<String, usize> = ledger.requests_by_service();
    let fewest = requests.values().min().copied().unwrap_or_default();
    let most = requests.values().max().copied().unwrap_or_default();
    (requests.len(), fewest, most)
}

#[test]
fn every_service_is_requested_once_an_interval() {
    let store = MinimalStore::new(Duration::ZERO);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Pending));
    let running = store.run(&ledger);
    for round in 1..=3 {
        // The clock does not advance within a round, so nothing is due twice.
        ledger.wait_for(SERVICES * round);
        store.wait_for_reads(3);
        assert_eq!(requests_per_service(&ledger), (SERVICES, round, round));
        store.clock.advance(SECOND);
    }
    running.wait_for_shutdown().unwrap();
}

#[test]
fn batches_without_news_are_requested_less_often() {
    let store = MinimalStore::new(Duration::ZERO);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::NotReported));
    let running = store.run(&ledger);
    ledger.wait_for(SERVICES);
    store.clock.advance(SECOND * 40);
    ledger.wait_for(SERVICES * 2);
    // A quarter of the 40 s must pass before the next request.
    store.clock.advance(SECOND * 9);
    store.wait_for_reads(3);
    assert_eq!(requests_per_service(&ledger), (SERVICES, 2, 2));
    store.clock.advance(SECOND);
    ledger.wait_for(SERVICES * 3);
    running.wait_for_shutdown().unwrap();
    assert_eq!(requests_per_service(&ledger), (SERVICES, 3, 3));
}

#[test]
fn all_services_take_turns_when_all_are_always_due() {
    let store = MinimalStore::new(HOUR);
    let gate = Arc::new(Semaphore::new(0));
    let ledger = Arc::new(Ledger::gated(&gate, LedgerStatus::Pending).with_connections(50));
    let running = store.run(&ledger);
    for answered in (0..SERVICES * 3).step_by(50) {
        ledger.wait_for(answered + 50);
        gate.add_permits(50);
    }
    let (services, fewest, most) = requests_per_service(&ledger);
    assert!(services == SERVICES && most - fewest <= 1, "{services}: {fewest} to {most} requests");
    gate.add_permits(100);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn requests_of_a_second_are_limited_and_shared() {
    const REQUESTS: usize = 120;
    let store = MinimalStore::new(Duration::ZERO);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Pending));
    let limited = MonitorOptions { requests_per_second: 100, ..options() };
    let running = run(store.builder(&ledger).with_options(limited));
    ledger.wait_for(REQUESTS);
    running.wait_for_shutdown().unwrap();
    let requests = ledger.requests.get();
    let took = requests[REQUESTS - 1].at - requests[0].at;
    // A tenth of a second's requests may be sent at once.
    assert!(took >= SECOND, "{REQUESTS} requests within {took:?}");
    assert_eq!(requests_per_service(&ledger), (requests.len(), 1, 1));
}
