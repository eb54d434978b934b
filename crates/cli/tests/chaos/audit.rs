//! Compares what was promised with the ledger's record and with the store.

use std::{
    thread,
    time::{Duration, Instant},
};

use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::{BatchFilter, BatchQueryStore};
use grid_batch_core::{Clock, SystemClock};
use grid_batch_ledger_sim::{Audit, ExecutionResult, StateAudit, ledger_results};
use grid_batch_protocol::Batch;
use grid_batch_store::{Store, StoreOptions};

use crate::{clients::Promise, downtime::downtimes, harness::ChaosHarness};

/// Longer than a hold takes, with the batches that wait behind the held one.
const LIMIT: Duration = Duration::from_secs(60);

pub fn open_store(harness: &ChaosHarness) -> Store {
    Store::open(&harness.postgres.url().parse().unwrap(), StoreOptions::default()).unwrap()
}

/// Waits until every promised batch has ended. Panics if none ends for a while, and lists those that wait.
pub fn wait_until_all_ended(store: &Store, promised: usize) {
    let (mut ended, mut since) = (count_ended(store), Instant::now());
    while ended < promised as u64 {
        assert!(since.elapsed() < LIMIT, "some batches do not end:\n{}", describe_open(store));
        thread::sleep(Duration::from_millis(50));
        let now = count_ended(store);
        if now != ended {
            (ended, since) = (now, Instant::now());
        }
    }
}

fn count_ended(store: &Store) -> u64 {
    let count = |state| store.count(&BatchFilter { state: Some(state), ..BatchFilter::default() });
    count(BatchState::Committed).unwrap() + count(BatchState::Invalid).unwrap()
}

fn describe_open(store: &Store) -> String {
    let depths = store.depths(None, 20).unwrap();
    let lines = depths.iter().map(|depth| {
        let first = store.open_batches(&depth.service_id, 1).unwrap();
        format!("{} has {} open, the first: {:?}\n", depth.service_id, depth.open, first.first())
    });
    lines.collect()
}

/// Describes the batches whose state in the store differs from the ledger's record.
pub fn find_misreported(
    harness: &ChaosHarness,
    store: &Store,
    promises: &[Promise],
) -> Vec<String> {
    let results = ledger_results(&harness.ledger.record());
    let mut misreported = Vec::new();
    for Promise { batch, .. } in promises {
        let found = store.find(&batch.batch_id).unwrap();
        let state = found.first().map(|batch| batch.progress.state);
        let result = results.get(&batch.batch_id);
        // A batch that depends on an invalid one ends without being sent. The audit of the state finds it if
        // it should have been applied.
        let may_be_unsent = harness.is_parallel();
        let is_right = match (state, result) {
            (Some(BatchState::Committed), Some(ExecutionResult::Applied))
            | (Some(BatchState::Invalid), Some(ExecutionResult::Invalid)) => true,
            (Some(BatchState::Invalid), None) => may_be_unsent,
            _ => false,
        };
        if !is_right {
            misreported.push(format!(
                "{} is {state:?} in the store and {result:?} at the ledger",
                batch.batch_id
            ));
        }
    }
    misreported
}

pub fn print_summary(
    harness: &ChaosHarness,
    promises: &[Promise],
    audit: &Audit,
    misreported: usize,
) {
    for (event, count) in harness.events.counts() {
        println!("{count:>8}  {event}");
    }
    let Audit { applied, invalid, lost, duplicated, out_of_order, .. } = audit;
    println!("{:>8}  batches promised", promises.len());
    println!("{applied:>8}  committed\n{:>8}  invalid", invalid.len());
    print_longest_downtimes(harness, promises);
    println!(
        "lost {}, duplicated {}, out of order {}, misreported {misreported}",
        lost.len(),
        duplicated.len(),
        out_of_order.len(),
    );
}

/// The promised batches in the order in which the server has accepted them. Panics if it is not that of each
/// client's requests.
pub fn in_accepted_order(store: &Store, promises: &[Promise]) -> Vec<Batch> {
    let mut accepted = Vec::with_capacity(promises.len());
    let mut last = None;
    for Promise { batch, client, .. } in promises {
        let stored = store.find(&batch.batch_id).unwrap();
        let place = (*client, stored[0].created_at);
        assert!(last.is_none_or(|last| last < place), "{} is out of order", batch.batch_id);
        last = Some(place);
        accepted.push((stored[0].created_at, batch));
    }
    accepted.sort_by_key(|(created_at, _)| *created_at);
    accepted.into_iter().map(|(_, batch)| batch.message().clone()).collect()
}

pub fn print_state_summary(harness: &ChaosHarness, audit: &StateAudit, misreported: usize) {
    for (event, count) in harness.events.counts() {
        println!("{count:>8}  {event}");
    }
    println!("{:>8}  batches at the ledger at most", harness.ledger.most_waiting());
    println!("{audit}, {misreported} misreported");
}

/// Prints the longest downtime with and without a wait for the operator. Outages do not count.
fn print_longest_downtimes(harness: &ChaosHarness, promises: &[Promise]) {
    let outages = harness.events.outages();
    let start = promises.iter().map(|promise| promise.since).min().unwrap_or(SystemClock.now());
    let downtimes = downtimes(promises, &harness.ledger.record()).into_iter().map(|downtime| {
        let waits = harness.events.operator_waits(&downtime.service);
        let waited = waits.iter().any(|wait| downtime.overlaps(*wait));
        (waited, downtime.duration_outside(&outages), downtime)
    });
    let (with_wait, without): (Vec<_>, Vec<_>) = downtimes.partition(|(waited, ..)| *waited);
    for (suffix, downtimes) in [("", without), (" with a wait for the operator", with_wait)] {
        let longest = downtimes.into_iter().max_by_key(|(_, duration, _)| *duration);
        if let Some((_, duration, downtime)) = longest {
            let at = downtime.span.0.since(start);
            println!(
                "{duration:>8.1?}  longest downtime{suffix}: {} after {at:.1?}",
                downtime.service
            );
        }
    }
}
