//! Polls that are triggered before the interval.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use grid_batch_core::batches::{
    BatchState::{Committed, Pending, Submitting},
    LedgerStatus,
};
use grid_batch_poller::{MonitorOptions, PollTrigger, ShutdownHandle};
use tokio::sync::Semaphore;

use crate::support::*;

/// A store in which nothing is due for an hour.
fn not_due(services: &[&str]) -> Store {
    let store = Store::with(services);
    store
        .rows
        .change(|rows| rows.iter_mut().for_each(|row| row.checked_at = Some(row.submitted_at)));
    store
}

#[test]
fn trigger_polls_one_service_at_once() {
    let store = not_due(&["a", "b"]);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
    let running = run(builder(&store, &ledger).with_options(hourly()));
    running.trigger().trigger("a");
    store.wait_for_state(0, Committed);
    running.wait_for_shutdown().unwrap();
    assert_eq!(ledger.requests_by_service(), [("a".to_owned(), 1)].into());
    assert_eq!(store.state(1), Pending);
}

#[test]
fn failed_request_is_retried_before_the_batch_is_due() {
    let store = not_due(&["a"]);
    let number = std::sync::atomic::AtomicUsize::new(1);
    let ledger = Arc::new(Ledger::new(move |_, ids| {
        match number.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            1 | 2 => answer(all(ids, LedgerStatus::Pending)),
            3..6 => Box::pin(std::future::ready(Err(unavailable()))),
            _ => answer(all(ids, LedgerStatus::Committed)),
        }
    }));
    let running = run(builder(&store, &ledger));
    running.trigger().trigger("a");
    // An answer is handled after the next poll was scheduled by the time before the advance.
    until(|| running.stats().answered >= 1);
    // Now the batch is so old that it is due again after minutes.
    store.clock.advance(HOUR);
    ledger.wait_for(2);
    running.trigger().trigger("a");
    for failures in 1..4 {
        until(|| running.stats().failed == failures);
        store.clock.advance(SECOND / 10);
    }
    store.wait_for_state(0, Committed);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn trigger_before_the_run_is_kept() {
    let store = not_due(&["a"]);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
    let trigger = PollTrigger::new();
    trigger.trigger("a");
    let running =
        run(builder(&store, &ledger).with_options(hourly()).with_trigger(trigger.clone()));
    store.wait_for_state(0, Committed);
    // The trigger also works after a stop.
    let stopped = running.stop().unwrap();
    store.add("a", 1, Pending, Duration::ZERO);
    trigger.trigger("a");
    let running = stopped.run().unwrap();
    store.wait_for_state(1, Committed);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn polls_of_a_service_start_a_gap_apart() {
    const GAP: Duration = Duration::from_millis(30);
    let store = not_due(&["a"]);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Pending));
    let gap = MonitorOptions { trigger_gap: GAP, ..hourly() };
    let running = run(builder(&store, &ledger).with_options(gap));
    let started = Instant::now();
    running.trigger().trigger("a");
    for polls in 1..4_u32 {
        ledger.wait_for(polls as usize);
        assert!(ledger.requests.get()[polls as usize - 1].at - started >= GAP * (polls - 1));
        (0..100).for_each(|_| running.trigger().trigger("a"));
    }
    running.wait_for_shutdown().unwrap();
    let polls = ledger.requests.get().len();
    assert!(polls < 30, "{polls} polls for 301 triggers");
}

#[test]
fn triggers_during_a_request_are_one_more_poll() {
    let store = not_due(&["a"]);
    let gate = Arc::new(Semaphore::new(0));
    let ledger = Arc::new(Ledger::gated(&gate, LedgerStatus::Pending));
    let running = run(builder(&store, &ledger).with_options(hourly()));
    running.trigger().trigger("a");
    ledger.wait_for(1);
    for _ in 0..100 {
        running.trigger().trigger("a");
    }
    gate.add_permits(100);
    ledger.wait_for(2);
    running.wait_for_shutdown().unwrap();
    assert_eq!(ledger.requests.get().len(), 2);
    assert_eq!(ledger.in_flight.get().1, 1);
}

#[test]
fn event_before_the_submission_answer_is_not_lost() {
    let store = not_due(&["a", "marker"]);
    store.rows.change(|rows| {
        rows[0].progress = first_attempt(Submitting);
    });
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
    let running = run(builder(&store, &ledger).with_options(hourly()));
    running.trigger().trigger("a");
    // It is read together with the first trigger or after it, so when it is done, the first trigger found nothing.
    running.trigger().trigger("marker");
    store.wait_for_state(1, Committed);
    assert_eq!(ledger.requests_by_service().get("a"), None);

    store.rows.change(|rows| {
        rows[0].progress = first_attempt(Pending);
    });
    running.trigger().submitted("a", "batch");
    store.wait_for_state(0, Committed);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn submission_without_an_event_waits_until_due() {
    let store = not_due(&["a", "marker"]);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
    let running = run(builder(&store, &ledger).with_options(hourly()));
    running.trigger().submitted("a", "batch");
    running.trigger().trigger("marker");
    store.wait_for_state(1, Committed);
    running.wait_for_shutdown().unwrap();
    assert_eq!(ledger.requests_by_service(), [("marker".to_owned(), 1)].into());
}

#[test]
fn more_triggers_than_the_batch_limit_are_all_polled() {
    let names: Vec<String> = (0..20).map(|number| format!("service-{number}")).collect();
    let store = not_due(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
    let trigger = PollTrigger::new();
    names.iter().for_each(|name| trigger.trigger(name));
    let few = MonitorOptions { batch_limit: 3, ..hourly() };
    let running = run(builder(&store, &ledger).with_options(few).with_trigger(trigger));
    (0..20).for_each(|number| store.wait_for_state(number, Committed));
    running.wait_for_shutdown().unwrap();
}
