//! Which batches are requested, when and in which order.

use std::{sync::Arc, time::Duration};

use grid_batch_core::batches::{
    BatchState::{self, Committed, Pending},
    LedgerStatus,
};
use grid_batch_poller::{MonitorOptions, ShutdownHandle};
use tokio::sync::Semaphore;

use crate::support::*;

#[test]
fn requests_and_writes_are_grouped_by_service() {
    let store = Store::with(&["a", "b", "a", "b", "a"]);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
    let running = run(builder(&store, &ledger));
    (0..5).for_each(|number| store.wait_for_state(number, Committed));
    running.wait_for_shutdown().unwrap();

    let mut requests: Vec<_> =
        ledger.requests.get().into_iter().map(|request| (request.service, request.ids)).collect();
    requests.sort();
    let of = |numbers: &[usize]| numbers.iter().map(|number| batch(*number)).collect::<Vec<_>>();
    assert_eq!(requests, [("a".to_owned(), of(&[0, 2, 4])), ("b".to_owned(), of(&[1, 3]))]);

    let mut written = Vec::new();
    for call in store.calls.get() {
        if let Call::Update(groups) = call {
            written.extend(groups.into_iter().map(|(service, reports)| (service, reports.len())));
        }
    }
    written.sort();
    assert_eq!(written, [("a".to_owned(), 3), ("b".to_owned(), 2)]);
}

#[test]
fn least_recently_checked_comes_first() {
    let store =
        Store::with(&["submitted-first", "submitted-next", "checked-last", "checked-before"]);
    store.rows.change(|rows| {
        rows[2].checked_at = Some(rows[2].submitted_at.plus(SECOND * 2));
        rows[3].checked_at = Some(rows[3].submitted_at.plus(SECOND));
    });
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed).with_connections(1));
    let running = run(builder(&store, &ledger));
    (0..4).for_each(|number| store.wait_for_state(number, Committed));
    running.wait_for_shutdown().unwrap();
    let services: Vec<_> =
        ledger.requests.get().into_iter().map(|request| request.service).collect();
    assert_eq!(services, ["submitted-first", "submitted-next", "checked-before", "checked-last"]);
}

#[test]
fn all_connections_are_used_and_not_exceeded() {
    let names: Vec<String> = (0..20).map(|number| format!("service-{number}")).collect();
    let store = Store::with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let gate = Arc::new(Semaphore::new(0));
    let ledger = Arc::new(Ledger::gated(&gate, LedgerStatus::Committed).with_connections(3));
    let running = run(builder(&store, &ledger));
    for answered in 0..17 {
        ledger.in_flight.wait_until(|(now, _)| *now == 3);
        ledger.wait_for(answered + 3);
        gate.add_permits(1);
    }
    gate.add_permits(100);
    (0..20).for_each(|number| store.wait_for_state(number, Committed));
    running.wait_for_shutdown().unwrap();
    assert_eq!(ledger.in_flight.get(), (0, 3));
    assert_eq!(ledger.requests.get().len(), 20, "no batch is requested twice at a time");
}

#[test]
fn due_batches_are_requested_without_waiting() {
    let services = ["a", "b", "a", "c", "b", "a", "a", "a"];
    let store = Store::with(&services);
    store.clock.advance(HOUR * 2);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
    // The next read at the interval would be in an hour.
    let one_at_a_time = MonitorOptions { batch_limit: 1, ..hourly() };
    let running = run(builder(&store, &ledger).with_options(one_at_a_time));
    (0..services.len()).for_each(|number| store.wait_for_state(number, Committed));
    running.wait_for_shutdown().unwrap();
}

#[test]
fn slow_service_does_not_delay_others() {
    let mut services = vec!["slow"; 50];
    services.extend(["quick", "quicker"]);
    let store = Store::with(&services);
    let gate = Arc::new(Semaphore::new(0));
    let slow = Arc::clone(&gate);
    let ledger = Arc::new(Ledger::new(move |service, ids| {
        let reports = all(ids, LedgerStatus::Committed);
        let (slow, is_slow) = (Arc::clone(&slow), service == "slow");
        Box::pin(async move {
            if is_slow {
                slow.acquire().await.unwrap().forget();
            }
            Ok(reports)
        })
    }));
    let few = MonitorOptions { batch_limit: 2, ..options() };
    let running = run(builder(&store, &ledger).with_options(few));
    store.wait_for_state(50, Committed);
    store.wait_for_state(51, Committed);
    assert_eq!(store.state(0), Pending);
    assert_eq!(ledger.requests_by_service()["slow"], 1, "it has one request in flight");
    gate.add_permits(100);
    (0..50).for_each(|number| store.wait_for_state(number, Committed));
    running.wait_for_shutdown().unwrap();
}

#[test]
fn new_batch_is_found_at_the_poll_interval() {
    let store = Store::new();
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
    let running = run(builder(&store, &ledger));
    store.reads_at.wait_until(|paces| paces.len() >= 3);
    store.add("a", 0, Pending, SECOND * 60);
    store.wait_for_state(0, Committed);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn stuck_batch_is_requested_less_and_less_often() {
    let store = Store::new();
    store.add("a", 0, BatchState::Pending, Duration::ZERO);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Pending));
    let pace = MonitorOptions {
        poll_interval: Duration::from_millis(1),
        longest_interval: SECOND * 60,
        ..options()
    };
    let running = run(builder(&store, &ledger).with_options(pace));
    let mut counts = Vec::new();
    for _ in 0..3 {
        let before = ledger.requests.get().len();
        for _ in 0..200 {
            store.clock.advance(SECOND * 2);
            // Two reads later, what was due has been requested.
            let reads = store.reads_at.get().len();
            store.reads_at.wait_until(|paces| paces.len() >= reads + 2);
            ledger.in_flight.wait_until(|(now, _)| *now == 0);
        }
        counts.push(ledger.requests.get().len() - before);
    }
    running.wait_for_shutdown().unwrap();
    assert!(counts[0] > counts[1], "{counts:?}");
    // In the end once a minute, plus or minus one at the edges.
    assert!((6..=8).contains(&counts[2]), "{counts:?}");
}
