//! A server that answers but is not a ledger, and a ledger that does not answer.

use std::{future::ready, sync::Arc};

use grid_batch_core::{
    BatchError, BatchResult,
    batches::{
        BatchState::{InDoubt, Pending},
        LedgerStatus,
    },
    evidence::{Evidence, EvidenceReport, Resolution},
    mocks::MockLedger,
};
use grid_batch_poller::{InconclusivePolicy, ShutdownHandle};

use crate::support::*;

fn unusable() -> BatchError {
    BatchError::InvalidAnswer("http://node: a web page".to_owned())
}

/// A ledger whose status requests end like this.
fn failing(error: fn() -> BatchError) -> Arc<Ledger> {
    Arc::new(Ledger::new(move |_, _| Box::pin(ready(Err(error())))))
}

fn evidence(report: fn() -> BatchResult<EvidenceReport>) -> Arc<MockLedger> {
    let mut reader = MockLedger::new();
    reader.expect_find_evidence().returning(move |_| Box::pin(ready(report())));
    Arc::new(reader)
}

fn hold_reason(store: &Store) -> Option<String> {
    store.resolutions().into_iter().find_map(|resolution| match resolution {
        Resolution::Hold(reason) => Some(reason),
        _ => None,
    })
}

#[test]
fn batch_without_a_usable_answer_is_held_with_the_error() {
    for state in [InDoubt, Pending] {
        let store = Store::new();
        store.add("a", 0, state, SECOND);
        let reader = evidence(|| Err(unusable()));
        let builder = builder(&store, &failing(unusable)).with_evidence(store.clone(), reader);
        // The policy only applies to ledgers that answer but prove nothing.
        let running = run(builder.with_inconclusive_policy(|_| InconclusivePolicy::Resubmit));
        until(|| running.stats().evidence_failures > 0);
        assert_eq!(hold_reason(&store), None, "it is too early");
        store.pass_time_until(|| hold_reason(&store).is_some());
        let reason = hold_reason(&store).unwrap();
        assert!(reason.contains("http://node: a web page"), "{reason}");
        running.wait_for_shutdown().unwrap();
    }
}

#[test]
fn outage_holds_nothing_and_stands_still() {
    let store = Store::new();
    store.add("a", 0, InDoubt, SECOND);
    let ledger = failing(unavailable);
    let reader = evidence(|| Err(unavailable()));
    let running = run(builder(&store, &ledger).with_evidence(store.clone(), reader));
    let requests = |more| ledger.requests.get().len() + more;
    for wanted in [20, 40] {
        let wanted = requests(wanted);
        store.pass_time_until(|| ledger.requests.get().len() >= wanted);
    }
    until(|| running.stats().stalled_services == 1);
    assert_eq!(hold_reason(&store), None);
    running.wait_for_shutdown().unwrap();
}

/// Evidence is searched although the statuses cannot be used.
#[test]
fn evidence_ends_a_batch_whose_statuses_are_unusable() {
    let store = Store::new();
    store.add("a", 0, InDoubt, SECOND);
    let reader = evidence(|| Ok(Evidence::Committed.into()));
    let running = run(builder(&store, &failing(unusable)).with_evidence(store.clone(), reader));
    store.wait_for_state(0, grid_batch_core::batches::BatchState::Committed);
    running.wait_for_shutdown().unwrap();
}

/// If a search fails after usable statuses, the batch is held by the same rule.
#[test]
fn unusable_evidence_after_usable_statuses_is_held() {
    let store = Store::new();
    store.add("a", 0, InDoubt, SECOND);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::NotReported));
    let reader = evidence(|| Err(unusable()));
    let running = run(builder(&store, &ledger).with_evidence(store.clone(), reader));
    store.pass_time_until(|| hold_reason(&store).is_some());
    running.wait_for_shutdown().unwrap();
}
