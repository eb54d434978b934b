//! What is asked, when, and in which order.

use std::{sync::Arc, time::Duration};

use grid_batch_core::{
    BatchState::{self, Committed, Pending},
    LedgerStatus, ShutdownHandle,
};
use grid_batch_poller::MonitorOptions;
use tokio::sync::Semaphore;

use crate::support::*;

#[test]
fn batches_are_asked_for_by_service_and_what_is_said_is_written_by_service() {
    let store = Store::with(&["a", "b", "a", "b", "a"]);
    let ledger = Arc::new(Ledger::saying(LedgerStatus::Committed));
    let running = run(builder(&store, &ledger));
    (0..5).for_each(|number| store.wait_for_state(number, Committed));
    running.wait_for_shutdown().unwrap();

    let mut asked: Vec<_> =
        ledger.asked.get().into_iter().map(|asked| (asked.service, asked.ids)).collect();
    asked.sort();
    let of = |numbers: &[usize]| numbers.iter().map(|number| batch(*number)).collect::<Vec<_>>();
    assert_eq!(asked, [("a".to_owned(), of(&[0, 2, 4])), ("b".to_owned(), of(&[1, 3]))]);

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
fn the_least_recently_checked_come_first_then_the_first_submitted() {
    let store =
        Store::with(&["submitted-first", "submitted-next", "checked-last", "checked-before"]);
    store.rows.change(|rows| {
        rows[2].checked_at = Some(rows[2].submitted_at.plus(SECOND * 2));
        rows[3].checked_at = Some(rows[3].submitted_at.plus(SECOND));
    });
    let ledger = Arc::new(Ledger::saying(LedgerStatus::Committed).with_connections(1));
    let running = run(builder(&store, &ledger));
    (0..4).for_each(|number| store.wait_for_state(number, Committed));
    running.wait_for_shutdown().unwrap();
    let services: Vec<_> = ledger.asked.get().into_iter().map(|asked| asked.service).collect();
    assert_eq!(services, ["submitted-first", "submitted-next", "checked-before", "checked-last"]);
}

#[test]
fn all_connections_are_used_and_never_more() {
    let names: Vec<String> = (0..20).map(|number| format!("service-{number}")).collect();
    let store = Store::with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let gate = Arc::new(Semaphore::new(0));
    let ledger = Arc::new(Ledger::behind(&gate, LedgerStatus::Committed).with_connections(3));
    let running = run(builder(&store, &ledger));
    for answered in 0..17 {
        ledger.at_once.wait_until(|(now, _)| *now == 3);
        ledger.wait_for(answered + 3);
        gate.add_permits(1);
    }
    gate.add_permits(100);
    (0..20).for_each(|number| store.wait_for_state(number, Committed));
    running.wait_for_shutdown().unwrap();
    assert_eq!(ledger.at_once.get(), (0, 3));
    assert_eq!(ledger.asked.get().len(), 20, "none is asked for while it is asked for");
}

#[test]
fn there_is_no_sleeping_while_work_is_due() {
    let services = ["a", "b", "a", "c", "b", "a", "a", "a"];
    let store = Store::with(&services);
    store.clock.advance(HOUR * 2);
    let ledger = Arc::new(Ledger::saying(LedgerStatus::Committed));
    // The next look but for that would be in an hour.
    let one_at_a_time = MonitorOptions { batch_limit: 1, ..patient() };
    let running = run(builder(&store, &ledger).with_options(one_at_a_time));
    (0..services.len()).for_each(|number| store.wait_for_state(number, Committed));
    running.wait_for_shutdown().unwrap();
}

#[test]
fn a_service_that_is_slow_delays_no_other_however_much_of_it_is_due() {
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
    assert_eq!(ledger.tally()["slow"], 1, "it is not asked again while it is asked");
    gate.add_permits(100);
    (0..50).for_each(|number| store.wait_for_state(number, Committed));
    running.wait_for_shutdown().unwrap();
}

#[test]
fn what_comes_while_nothing_is_pending_is_found_at_the_interval() {
    let store = Store::new();
    let ledger = Arc::new(Ledger::saying(LedgerStatus::Committed));
    let running = run(builder(&store, &ledger));
    store.paces.wait_until(|paces| paces.len() >= 3);
    store.add("a", 0, Pending, SECOND * 60);
    store.wait_for_state(0, Committed);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn a_batch_that_is_stuck_is_asked_for_less_and_less_and_never_forgotten() {
    let store = Store::new();
    store.add("a", 0, BatchState::Pending, Duration::ZERO);
    let ledger = Arc::new(Ledger::saying(LedgerStatus::Pending));
    let pace = MonitorOptions {
        poll_interval: Duration::from_millis(1),
        longest_interval: SECOND * 60,
        ..options()
    };
    let running = run(builder(&store, &ledger).with_options(pace));
    let mut asked_in = Vec::new();
    for _ in 0..3 {
        let before = ledger.asked.get().len();
        for _ in 0..200 {
            store.clock.advance(SECOND * 2);
            // Two looks later, what was due by then has been asked for.
            let looks = store.paces.get().len();
            store.paces.wait_until(|paces| paces.len() >= looks + 2);
            ledger.at_once.wait_until(|(now, _)| *now == 0);
        }
        asked_in.push(ledger.asked.get().len() - before);
    }
    running.wait_for_shutdown().unwrap();
    assert!(asked_in[0] > asked_in[1], "{asked_in:?}");
    // Once a minute in the end, give or take the moment in which it was due.
    assert!((6..=8).contains(&asked_in[2]), "{asked_in:?}");
}
