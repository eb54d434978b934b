//! Batches that the ledger reports as invalid after they were sent again.

use std::{future::ready, sync::Arc, time::Duration};

use grid_batch_core::{
    Clock,
    batches::{
        BatchState::{Committed, InDoubt, Invalid, Pending},
        LedgerStatus,
    },
    evidence::{Evidence, Resolution},
    mocks::MockLedger,
};
use grid_batch_poller::{MonitorOptions, ShutdownHandle};
use tokio::time::sleep;

use crate::support::*;

const DAY: Duration = Duration::from_hours(24);

/// The second attempt of a batch, which the ledger reports as invalid. Its evidence is `evidence`.
fn start(limit: Duration, evidence: Evidence) -> (Store, Arc<Ledger>, Running) {
    let store = Store::new();
    store.add("a", 0, InDoubt, SECOND);
    store.rows.change(|rows| {
        rows[0].progress.attempts = 2;
        rows[0].progress.earlier_may_arrive = true;
    });
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Invalid));
    let mut reader = MockLedger::new();
    reader.expect_find_evidence().returning(move |_| Box::pin(ready(Ok(evidence.into()))));
    // The clock of these tests can pass two minutes while the answer to one question arrives.
    let hold_after = if limit < DAY { DAY * 365 } else { options().hold_after };
    let options = MonitorOptions { late_arrival_limit: limit, hold_after, ..options() };
    let running = run(builder(&store, &ledger)
        .with_options(options)
        .with_evidence(store.clone(), Arc::new(reader)));
    (store, ledger, running)
}

/// The same, but the ledger reports nothing about it, and evidence takes longer than two status requests.
fn start_with_slow_evidence(limit: Duration, evidence: Evidence) -> (Store, Running) {
    let store = Store::new();
    store.add("a", 0, Pending, SECOND);
    store.rows.change(|rows| {
        rows[0].progress.attempts = 2;
        rows[0].progress.earlier_may_arrive = true;
        rows[0].progress.invalid_reported = true;
    });
    let ledger = Arc::new(Ledger::new(|_, _| answer(Vec::new())));
    let mut reader = MockLedger::new();
    let (asked, read) = (Arc::clone(&ledger), store.clone());
    reader.expect_find_evidence().returning(move |_| {
        let (asked, read) = (Arc::clone(&asked), read.clone());
        let enough = asked.requests.get().len() + 3;
        Box::pin(async move {
            // No status is requested once the batch has ended.
            while asked.requests.get().len() < enough && read.state(0) == Pending {
                sleep(Duration::from_millis(1)).await;
            }
            Ok(evidence.into())
        })
    });
    let options = MonitorOptions { late_arrival_limit: limit, ..options() };
    let running = run(builder(&store, &ledger)
        .with_options(options)
        .with_evidence(store.clone(), Arc::new(reader)));
    (store, running)
}

/// Waits until the ledger has reported the batch as invalid. Before that, it may be held if much time passes.
fn wait_until_invalid_is_reported(store: &Store) {
    until(|| store.rows.get()[0].progress.invalid_reported);
}

/// How often a wait was ended, and a hold was written.
fn ends_and_holds(store: &Store) -> (usize, usize) {
    let resolutions = store.resolutions();
    let is_end = |one: &&Resolution| **one == Resolution::EarlierCannotArrive;
    let is_hold = |one: &&Resolution| matches!(one, Resolution::Hold(_));
    (resolutions.iter().filter(is_end).count(), resolutions.iter().filter(is_hold).count())
}

#[test]
fn invalid_is_final_after_the_late_arrival_limit() {
    let (store, _ledger, running) = start(SECOND * 330, Evidence::Inconclusive);
    wait_until_invalid_is_reported(&store);
    store.pass_time_until(|| store.state(0) == Invalid);
    assert_eq!(ends_and_holds(&store), (1, 0));
    running.wait_for_shutdown().unwrap();
}

#[test]
fn invalid_is_not_final_before_the_late_arrival_limit() {
    let (store, ledger, running) = start(DAY * 100_000, Evidence::Inconclusive);
    wait_until_invalid_is_reported(&store);
    store.pass_time_until(|| ledger.requests.get().len() > 50);
    assert_eq!((store.state(0), ends_and_holds(&store)), (InDoubt, (0, 0)));
    assert!(store.rows.get()[0].progress.waits_for_earlier());
    running.wait_for_shutdown().unwrap();
}

#[test]
fn wait_ends_although_evidence_takes_longer_than_polls() {
    let (store, running) = start_with_slow_evidence(SECOND * 330, Evidence::Lost);
    store.pass_time_until(|| store.state(0) == Invalid);
    assert_eq!(ends_and_holds(&store), (1, 0));
    running.wait_for_shutdown().unwrap();
}

#[test]
fn clock_that_is_set_forward_ends_no_wait() {
    let (store, ledger, running) = start(SECOND * 330, Evidence::Inconclusive);
    for requests in 1..20 {
        store.clock.set(store.clock.now().plus(DAY));
        running.trigger().trigger("a");
        ledger.wait_for(requests);
    }
    assert_eq!((store.state(0), ends_and_holds(&store)), (InDoubt, (0, 0)));
    running.wait_for_shutdown().unwrap();
}

#[test]
fn evidence_of_a_commit_ends_the_wait() {
    let (store, _ledger, running) = start(DAY * 100_000, Evidence::Committed);
    store.pass_time_until(|| store.state(0) == Committed);
    assert_eq!(ends_and_holds(&store), (0, 0));
    running.wait_for_shutdown().unwrap();
}
