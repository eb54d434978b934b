//! What was promised, beside what the ledger did and what the store says.

use std::time::{Duration, Instant};

use grid_batch_core::{BatchFilter, BatchState, Clock, SystemClock};
use grid_batch_ledger_sim::{Audit, ExecutionResult};
use grid_batch_store::{Store, StoreError, StoreOptions};

use crate::{bench::Bench, clients::Promise, pauses::pauses, person::verdicts};

/// Longer than anything that is held, and what waits behind it, takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn store(bench: &Bench) -> Store {
    Store::open(&bench.server.url().parse().unwrap(), StoreOptions::default()).unwrap()
}

/// Waits until every promised batch has ended; fails where one never does, and says which, and why.
pub fn until_all_ended(store: &Store, promised: usize) {
    let begun = Instant::now();
    while ended(store) < promised as u64 {
        assert!(begun.elapsed() < PATIENCE, "some batches do not end:\n{}", who_waits(store));
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn ended(store: &Store) -> u64 {
    let of_state =
        |state| store.count(&BatchFilter { state: Some(state), ..BatchFilter::default() });
    of_state(BatchState::Committed).unwrap() + of_state(BatchState::Invalid).unwrap()
}

fn who_waits(store: &Store) -> String {
    let first_of = |service| -> Result<_, StoreError> { store.open_batches(service, 1) };
    let waiting = store.depths(None, 20).unwrap();
    let lines = waiting.iter().map(|depth| {
        let first = first_of(&depth.service_id).unwrap();
        format!("{} has {} open, the first: {:?}\n", depth.service_id, depth.open, first.first())
    });
    lines.collect()
}

/// Batches of which the store says something else than the ledger.
pub fn misreported(bench: &Bench, store: &Store, promises: &[Promise]) -> Vec<String> {
    let verdicts = verdicts(bench);
    let mut wrong = Vec::new();
    for Promise { made, .. } in promises {
        let found = store.find(&made.batch_id).unwrap();
        let state = found.first().map(|batch| batch.progress.state);
        let verdict = verdicts.get(&made.batch_id);
        let is_right = matches!(
            (state, verdict),
            (Some(BatchState::Committed), Some(ExecutionResult::Applied))
                | (Some(BatchState::Invalid), Some(ExecutionResult::Invalid))
        );
        if !is_right {
            wrong.push(format!("{} is {state:?}, and the ledger says {verdict:?}", made.batch_id));
        }
    }
    wrong
}

pub fn print(bench: &Bench, promises: &[Promise], audit: &Audit, misreported: usize) {
    for (what, count) in bench.diary.counts() {
        println!("{count:>8}  {what}");
    }
    let Audit { applied, invalid, lost, duplicated, out_of_order, .. } = audit;
    println!("{:>8}  batches promised", promises.len());
    println!("{applied:>8}  committed\n{:>8}  invalid", invalid.len());
    print_pauses(bench, promises);
    println!(
        "lost {}, duplicated {}, out of order {}, misreported {misreported}",
        lost.len(),
        duplicated.len(),
        out_of_order.len(),
    );
}

/// The longest pauses: of those in which nobody waited for a person, and of the others.
fn print_pauses(bench: &Bench, promises: &[Promise]) {
    let outages = bench.diary.outages();
    let begun = promises.iter().map(|promise| promise.since).min().unwrap_or(SystemClock.now());
    let pauses = pauses(promises, &bench.ledger.record()).into_iter().map(|pause| {
        let held = bench.diary.held(&pause.service);
        let waited = held.iter().any(|(from, until)| *from < pause.span.1 && pause.span.0 < *until);
        (waited, pause.outside(&outages), pause)
    });
    let (held, free): (Vec<_>, Vec<_>) = pauses.partition(|(waited, ..)| *waited);
    for (what, pauses) in [("", free), (", while a person was waited for", held)] {
        if let Some((_, time, pause)) = pauses.into_iter().max_by_key(|(_, time, _)| *time) {
            let at = pause.span.0.since(begun);
            println!("{time:>8.1?}  longest pause{what}: of {} after {at:.1?}", pause.service);
        }
    }
}
