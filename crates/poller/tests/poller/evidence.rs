//! When evidence is requested and how batches are resolved.

use std::{future::ready, sync::Arc, time::Duration};

use grid_batch_core::{
    batches::{
        BatchState::{self, Absent, Committed, InDoubt, Pending, Valid},
        LedgerStatus,
    },
    evidence::{Evidence, Resolution},
    ledger::LedgerFacts,
    mocks::MockLedger,
};
use grid_batch_poller::{InconclusivePolicy, MonitorOptions, ShutdownHandle};
use tokio::sync::Semaphore;

use crate::support::*;

/// A reader that always returns this evidence.
fn evidence_reader(evidence: Evidence) -> Arc<MockLedger> {
    let mut reader = MockLedger::new();
    reader.expect_find_evidence().returning(move |_| Box::pin(ready(Ok(evidence.into()))));
    Arc::new(reader)
}

/// One batch of service "a" with this state and age, and a ledger that reports this status.
fn one_batch(state: BatchState, age: Duration, reported: LedgerStatus) -> (Store, Arc<Ledger>) {
    let store = Store::new();
    store.add("a", 0, state, age);
    (store, Arc::new(Ledger::reporting(reported)))
}

fn builder_with(store: &Store, ledger: &Arc<Ledger>, evidence: Evidence) -> Builder {
    builder(store, ledger).with_evidence(store.clone(), evidence_reader(evidence))
}

/// Advances the clock, and waits for the next request and until its reply is handled: for four more reads of the store,
/// because handling takes at most two.
fn wait_for_next_request(store: &Store, ledger: &Ledger, after: Duration) {
    let requests = ledger.requests.get().len();
    store.clock.advance(after);
    ledger.wait_for(requests + 1);
    ledger.in_flight.wait_until(|(now, _)| *now == 0);
    let reads = store.reads_at.get().len();
    store.reads_at.wait_until(|paces| paces.len() >= reads + 4);
}

#[test]
fn batch_in_doubt_and_not_reported_is_searched_at_once() {
    let (store, ledger) = one_batch(InDoubt, SECOND, LedgerStatus::NotReported);
    let running = run(builder_with(&store, &ledger, Evidence::Committed));
    store.wait_for_state(0, Committed);
    let stats = running.counters();
    running.wait_for_shutdown().unwrap();
    assert_eq!((stats.read().evidence_requests, stats.read().committed), (1, 1));
}

#[test]
fn evidence_request_names_service_batch_transactions() {
    let (store, ledger) = one_batch(InDoubt, SECOND, LedgerStatus::NotReported);
    let mut reader = MockLedger::new();
    reader
        .expect_find_evidence()
        .withf(|batch_in_doubt| {
            let names = [batch_in_doubt.batch_id, batch_in_doubt.transaction_ids[0]]
                .map(|id| id.to_string());
            batch_in_doubt.service_id.as_str() == "a" && names == [batch(0), batch(0)]
        })
        .returning(|_| Box::pin(ready(Ok(Evidence::Present.into()))));
    let running = run(builder(&store, &ledger).with_evidence(store.clone(), Arc::new(reader)));
    store.wait_for_state(0, Pending);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn batch_stays_in_doubt_without_evidence() {
    let (store, ledger) = one_batch(InDoubt, HOUR * 9, LedgerStatus::NotReported);
    let running = run(builder(&store, &ledger));
    for _ in 0..3 {
        wait_for_next_request(&store, &ledger, HOUR);
    }
    running.wait_for_shutdown().unwrap();
    assert_eq!(store.state(0), InDoubt);
    assert!(store.calls.get().iter().all(|call| matches!(call, Call::Checked(_))));
}

#[test]
fn reported_batch_is_searched_after_quiet_after() {
    for (state, reported) in [(Pending, LedgerStatus::Pending), (Valid, LedgerStatus::Valid)] {
        let (store, ledger) = one_batch(state, Duration::ZERO, reported);
        let running = run(builder_with(&store, &ledger, Evidence::Absent));
        while store.state(0) == state {
            wait_for_next_request(&store, &ledger, SECOND * 20);
            let submitted_at = store.rows.get()[0].submitted_at;
            if running.stats().evidence_requests > 0 {
                let age = grid_batch_core::Clock::now(&*store.clock).since(submitted_at);
                assert!((SECOND * 60..=SECOND * 80).contains(&age), "{age:?}");
                store.clock.advance(SECOND * 30);
                store.wait_for_state(0, Absent);
            }
        }
        running.wait_for_shutdown().unwrap();
    }
}

#[test]
fn new_batches_are_not_read_as_unresolved() {
    let (store, ledger) = one_batch(Pending, Duration::ZERO, LedgerStatus::Pending);
    let running = run(builder_with(&store, &ledger, Evidence::Absent));
    for _ in 0..5 {
        wait_for_next_request(&store, &ledger, SECOND * 2);
    }
    running.wait_for_shutdown().unwrap();
    assert!(store.calls.get().iter().all(|call| matches!(call, Call::Update(_))));
}

#[test]
fn absence_is_trusted_after_a_time_despite_the_pace() {
    let (store, ledger) = one_batch(InDoubt, SECOND, LedgerStatus::NotReported);
    // A held batch is polled rarely: at its pace, the next request would be in an hour.
    store.rows.change(|rows| rows[0].held = true);
    let slow = MonitorOptions { longest_interval: HOUR, ..options() };
    let running = run(builder_with(&store, &ledger, Evidence::Absent).with_options(slow));
    store.wait_for_resolutions(1);
    store.rows.change(|rows| rows[0].checked_at = Some(rows[0].submitted_at.plus(HOUR)));
    store.clock.advance(SECOND * 28);
    let reads = store.reads_at.get().len();
    store.reads_at.wait_until(|paces| paces.len() >= reads + 3);
    assert_eq!((store.state(0), store.resolutions().len()), (InDoubt, 1));

    store.clock.advance(SECOND * 2);
    store.wait_for_state(0, Absent);
    assert_eq!(running.stats().absent, 1);
    running.wait_for_shutdown().unwrap();
    let resolutions = [Evidence::Inconclusive, Evidence::Absent].map(Resolution::Evidence);
    assert_eq!(store.resolutions(), resolutions);
    assert_eq!(ledger.requests.get().len(), 1);
}

#[test]
fn inconclusive_batch_is_held_once_and_searched_again() {
    let (store, ledger) = one_batch(InDoubt, SECOND * 119, LedgerStatus::NotReported);
    let running = run(builder_with(&store, &ledger, Evidence::Inconclusive));
    store.wait_for_resolutions(1);
    for count in 2..5 {
        wait_for_next_request(&store, &ledger, HOUR);
        store.wait_for_resolutions(count);
    }
    assert_eq!(running.stats().held, 1);
    running.wait_for_shutdown().unwrap();
    let inconclusive = Resolution::Evidence(Evidence::Inconclusive);
    let reason = "in doubt for 1 h: no evidence shows whether the ledger has the batch; \
                  an operator must decide";
    assert_eq!(
        store.resolutions(),
        [
            inconclusive.clone(),
            Resolution::Hold(reason.to_owned()),
            inconclusive.clone(),
            inconclusive
        ]
    );
}

#[test]
fn evidence_that_facts_exclude_holds_the_batch() {
    for evidence in [Evidence::Absent, Evidence::Lost, Evidence::Repeatable, Evidence::Expired] {
        let (store, ledger) = one_batch(InDoubt, SECOND * 119, LedgerStatus::NotReported);
        let facts = Some(LedgerFacts::weakest(SECOND));
        let unprovable = MonitorOptions { facts, ..options() };
        let running = run(builder_with(&store, &ledger, evidence).with_options(unprovable));
        store.wait_for_resolutions(1);
        wait_for_next_request(&store, &ledger, HOUR);
        store.wait_for_resolutions(2);
        assert_eq!((running.stats().held, running.stats().absent), (1, 0));
        running.wait_for_shutdown().unwrap();
        assert_eq!(store.state(0), InDoubt);
    }
}

/// The pause until the next search is a quarter of the age of the batch.
#[test]
fn inconclusive_batch_is_held_on_time_despite_the_pace() {
    for (state, quiet_after) in [(InDoubt, SECOND * 60), (Pending, HOUR * 10)] {
        let (store, ledger) = one_batch(state, HOUR * 9, LedgerStatus::NotReported);
        let slow = MonitorOptions { longest_interval: HOUR, quiet_after, ..options() };
        let evidence = builder_with(&store, &ledger, Evidence::Inconclusive).with_options(slow);
        let running = run(evidence);
        store.wait_for_resolutions(1);
        store
            .rows
            .change(|rows| rows[0].checked_at = Some(grid_batch_core::Clock::now(&*store.clock)));
        store.clock.advance(SECOND * 119);
        let reads = store.reads_at.get().len();
        store.reads_at.wait_until(|paces| paces.len() >= reads + 3);
        assert_eq!(running.stats().held, 0);
        store.clock.advance(SECOND);
        until(|| running.stats().held == 1);
        running.wait_for_shutdown().unwrap();
    }
}

#[test]
fn inconclusive_policy_of_a_service_is_applied() {
    let store = Store::new();
    for (number, service) in ["held", "resubmitted", "broken"].into_iter().enumerate() {
        store.add(service, number, InDoubt, SECOND);
    }
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::NotReported));
    let policy = |service: &grid_batch_core::ServiceId| match service.as_str() {
        "resubmitted" => InconclusivePolicy::Resubmit,
        "broken" => panic!("injected by the test"),
        _ => InconclusivePolicy::Hold,
    };
    let running =
        run(builder_with(&store, &ledger, Evidence::Inconclusive).with_inconclusive_policy(policy));
    store.wait_for_resolutions(3);
    store.clock.advance(SECOND * 120);
    store.wait_for_resolutions(6);
    running.wait_for_shutdown().unwrap();
    assert_eq!([0, 1, 2].map(|number| store.state(number)), [InDoubt, Absent, InDoubt]);
    assert_eq!(
        store.rows.get().iter().map(|row| row.held).collect::<Vec<_>>(),
        [true, false, true]
    );
}

/// The times that a store returns may be of another clock, or of another run.
#[test]
fn stored_times_do_not_make_absence_trusted() {
    for age in [HOUR * 9, SECOND] {
        let (store, ledger) = one_batch(InDoubt, age, LedgerStatus::NotReported);
        let running = run(builder_with(&store, &ledger, Evidence::Absent));
        store.wait_for_resolutions(1);
        // The time of day jumps, and no time elapses.
        store.clock.set(grid_batch_core::Clock::now(&*store.clock).plus(HOUR));
        store.clock.advance(SECOND * 28);
        let reads = store.reads_at.get().len();
        store.reads_at.wait_until(|paces| paces.len() >= reads + 3);
        assert_eq!(store.state(0), InDoubt);
        store.clock.advance(SECOND * 2);
        store.wait_for_state(0, Absent);
        running.wait_for_shutdown().unwrap();
    }
}

#[test]
fn triggers_do_not_request_evidence_more_often() {
    let (store, ledger) = one_batch(InDoubt, SECOND * 40, LedgerStatus::NotReported);
    let running = run(builder_with(&store, &ledger, Evidence::Inconclusive));
    store.wait_for_resolutions(1);
    let reads = store.calls.get().iter().filter(|c| matches!(c, Call::ReadUnresolved(..))).count();
    for count in 2..20 {
        running.trigger().trigger("a");
        ledger.wait_for(count);
    }
    let stats = running.counters();
    running.wait_for_shutdown().unwrap();
    assert_eq!((stats.read().evidence_requests, reads), (1, 1));
    assert_eq!(
        store.calls.get().iter().filter(|c| matches!(c, Call::ReadUnresolved(..))).count(),
        1
    );
}

#[test]
fn evidence_and_status_requests_share_connections() {
    let store = Store::new();
    for number in 0..10 {
        store.add(&format!("service-{number}"), number, InDoubt, SECOND * 40);
    }
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::NotReported).with_connections(2));
    let gate = Arc::new(Semaphore::new(0));
    let (counted, closed) = (Arc::clone(&ledger), Arc::clone(&gate));
    let mut reader = MockLedger::new();
    reader.expect_find_evidence().times(10).returning(move |_| {
        let (counted, closed) = (Arc::clone(&counted), Arc::clone(&closed));
        Box::pin(async move {
            counted.begin();
            closed.acquire().await.unwrap().forget();
            counted.end();
            Ok(Evidence::Committed.into())
        })
    });
    let running = run(builder(&store, &ledger).with_evidence(store.clone(), Arc::new(reader)));
    for found in 0..9 {
        until(|| running.stats().evidence_requests == found + 2);
        ledger.in_flight.wait_until(|(now, _)| *now == 2);
        gate.add_permits(1);
    }
    gate.add_permits(1);
    (0..10).for_each(|number| store.wait_for_state(number, Committed));
    running.wait_for_shutdown().unwrap();
    assert_eq!(ledger.in_flight.get(), (0, 2));
}
