//! When evidence is looked for, and what it comes to.

use std::{future::ready, sync::Arc, time::Duration};

use grid_batch_core::{
    BatchState::{self, Absent, Committed, InDoubt, Pending, Valid},
    Evidence, LedgerStatus, Resolution, ShutdownHandle,
    mocks::MockEvidenceReader,
};
use grid_batch_poller::{MonitorOptions, Undecided};
use tokio::sync::Semaphore;

use crate::support::*;

/// A detective that always finds this.
fn detective(evidence: Evidence) -> Arc<MockEvidenceReader> {
    let mut detective = MockEvidenceReader::new();
    detective.expect_find_evidence().returning(move |_| Box::pin(ready(Ok(evidence))));
    Arc::new(detective)
}

/// One batch in a service "a", of this state and age; the ledger says this of it.
fn one(state: BatchState, age: Duration, says: LedgerStatus) -> (Store, Arc<Ledger>) {
    let store = Store::new();
    store.add("a", 0, state, age);
    (store, Arc::new(Ledger::saying(says)))
}

fn with(store: &Store, ledger: &Arc<Ledger>, evidence: Evidence) -> Builder {
    builder(store, ledger).with_evidence(store.clone(), detective(evidence))
}

/// Moves the clock and waits until the ledger was asked again and the leader has looked twice.
fn next_question(store: &Store, ledger: &Ledger, after: Duration) {
    let asked = ledger.asked.get().len();
    store.clock.advance(after);
    ledger.wait_for(asked + 1);
    ledger.at_once.wait_until(|(now, _)| *now == 0);
    let looks = store.paces.get().len();
    store.paces.wait_until(|paces| paces.len() >= looks + 2);
}

#[test]
fn a_batch_in_doubt_that_the_ledger_does_not_know_is_looked_for_at_once() {
    let (store, ledger) = one(InDoubt, SECOND, LedgerStatus::NotReported);
    let running = run(with(&store, &ledger, Evidence::Committed));
    store.wait_for_state(0, Committed);
    let stats = running.counters();
    running.wait_for_shutdown().unwrap();
    assert_eq!((stats.read().evidence_asked, stats.read().committed), (1, 1));
}

#[test]
fn evidence_is_looked_for_by_service_batch_and_transactions() {
    let (store, ledger) = one(InDoubt, SECOND, LedgerStatus::NotReported);
    let mut detective = MockEvidenceReader::new();
    detective
        .expect_find_evidence()
        .withf(|doubt| {
            let names = [doubt.batch_id, doubt.transaction_ids[0]].map(|id| id.to_string());
            doubt.service_id.as_str() == "a" && names == [batch(0), batch(0)]
        })
        .returning(|_| Box::pin(ready(Ok(Evidence::Present))));
    let running = run(builder(&store, &ledger).with_evidence(store.clone(), Arc::new(detective)));
    store.wait_for_state(0, Pending);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn without_evidence_a_doubt_stays() {
    let (store, ledger) = one(InDoubt, HOUR * 9, LedgerStatus::NotReported);
    let running = run(builder(&store, &ledger));
    for _ in 0..3 {
        next_question(&store, &ledger, HOUR);
    }
    running.wait_for_shutdown().unwrap();
    assert_eq!(store.state(0), InDoubt);
    assert!(store.calls.get().iter().all(|call| matches!(call, Call::Checked(_))));
}

#[test]
fn what_the_ledger_says_something_of_is_looked_for_only_when_it_is_quiet() {
    for (state, says) in [(Pending, LedgerStatus::Pending), (Valid, LedgerStatus::Valid)] {
        let (store, ledger) = one(state, Duration::ZERO, says);
        let running = run(with(&store, &ledger, Evidence::Absent));
        while store.state(0) == state {
            next_question(&store, &ledger, SECOND * 20);
            let submitted_at = store.rows.get()[0].submitted_at;
            if running.stats().evidence_asked > 0 {
                let age = grid_batch_core::Clock::now(&*store.clock).since(submitted_at);
                assert!((SECOND * 60..=SECOND * 80).contains(&age), "{age:?}");
                store.wait_for_state(0, Absent);
            }
        }
        running.wait_for_shutdown().unwrap();
    }
}

#[test]
fn the_doubts_of_young_batches_are_not_read() {
    let (store, ledger) = one(Pending, Duration::ZERO, LedgerStatus::Pending);
    let running = run(with(&store, &ledger, Evidence::Absent));
    for _ in 0..5 {
        next_question(&store, &ledger, SECOND * 2);
    }
    running.wait_for_shutdown().unwrap();
    assert!(store.calls.get().iter().all(|call| matches!(call, Call::Update(_))));
}

#[test]
fn absence_is_believed_only_after_a_time_and_then_without_waiting_for_the_pace() {
    let (store, ledger) = one(InDoubt, SECOND, LedgerStatus::NotReported);
    // By the pace alone it would be asked for in an hour.
    let slow = MonitorOptions { longest_interval: HOUR, ..options() };
    let running = run(with(&store, &ledger, Evidence::Absent).with_options(slow));
    store.wait_for_verdicts(1);
    store.rows.change(|rows| rows[0].checked_at = Some(rows[0].submitted_at.plus(HOUR)));
    store.clock.advance(SECOND * 28);
    let looks = store.paces.get().len();
    store.paces.wait_until(|paces| paces.len() >= looks + 3);
    assert_eq!((store.state(0), store.resolutions().len()), (InDoubt, 1));

    store.clock.advance(SECOND);
    store.wait_for_state(0, Absent);
    assert_eq!(running.stats().absent, 1);
    running.wait_for_shutdown().unwrap();
    let resolutions = [Evidence::Inconclusive, Evidence::Absent].map(Resolution::Evidence);
    assert_eq!(store.resolutions(), resolutions);
    assert_eq!(ledger.asked.get().len(), 1);
}

#[test]
fn what_nothing_proves_is_held_once_and_looked_for_further() {
    let (store, ledger) = one(InDoubt, SECOND * 119, LedgerStatus::NotReported);
    let running = run(with(&store, &ledger, Evidence::Inconclusive));
    store.wait_for_verdicts(1);
    for count in 2..5 {
        next_question(&store, &ledger, HOUR);
        store.wait_for_verdicts(count);
    }
    assert_eq!(running.stats().held, 1);
    running.wait_for_shutdown().unwrap();
    let inconclusive = Resolution::Evidence(Evidence::Inconclusive);
    let reason = "in doubt for 1 h, and nothing proves whether the ledger has it; \
                  a person must decide";
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
fn what_nothing_proves_is_tried_again_where_the_service_wishes_so() {
    let store = Store::new();
    for (number, service) in ["careful", "bold", "broken"].into_iter().enumerate() {
        store.add(service, number, InDoubt, SECOND * 120);
    }
    let ledger = Arc::new(Ledger::saying(LedgerStatus::NotReported));
    let bold = |service: &grid_batch_core::ServiceId| match service.as_str() {
        "bold" => Undecided::Resubmit,
        "broken" => panic!("as the test wishes"),
        _ => Undecided::Hold,
    };
    let running = run(with(&store, &ledger, Evidence::Inconclusive).with_undecided(bold));
    store.wait_for_verdicts(3);
    running.wait_for_shutdown().unwrap();
    assert_eq!([0, 1, 2].map(|number| store.state(number)), [InDoubt, Absent, InDoubt]);
    assert_eq!(
        store.rows.get().iter().map(|row| row.held).collect::<Vec<_>>(),
        [true, false, true]
    );
}

#[test]
fn triggers_do_not_have_evidence_looked_for_more_often_than_the_pace() {
    let (store, ledger) = one(InDoubt, SECOND * 40, LedgerStatus::NotReported);
    let running = run(with(&store, &ledger, Evidence::Inconclusive));
    store.wait_for_verdicts(1);
    let doubts_read = store.calls.get().iter().filter(|c| matches!(c, Call::Doubts(..))).count();
    for count in 2..20 {
        running.trigger().trigger("a");
        ledger.wait_for(count);
    }
    let stats = running.counters();
    running.wait_for_shutdown().unwrap();
    assert_eq!((stats.read().evidence_asked, doubts_read), (1, 1));
    assert_eq!(store.calls.get().iter().filter(|c| matches!(c, Call::Doubts(..))).count(), 1);
}

#[test]
fn evidence_and_questions_share_the_connections() {
    let store = Store::new();
    for number in 0..10 {
        store.add(&format!("service-{number}"), number, InDoubt, SECOND * 40);
    }
    let ledger = Arc::new(Ledger::saying(LedgerStatus::NotReported).with_connections(2));
    let gate = Arc::new(Semaphore::new(0));
    let (counted, closed) = (Arc::clone(&ledger), Arc::clone(&gate));
    let mut detective = MockEvidenceReader::new();
    detective.expect_find_evidence().times(10).returning(move |_| {
        let (counted, closed) = (Arc::clone(&counted), Arc::clone(&closed));
        Box::pin(async move {
            counted.begin();
            closed.acquire().await.unwrap().forget();
            counted.end();
            Ok(Evidence::Committed)
        })
    });
    let running = run(builder(&store, &ledger).with_evidence(store.clone(), Arc::new(detective)));
    for found in 0..9 {
        until(|| running.stats().evidence_asked == found + 2);
        ledger.at_once.wait_until(|(now, _)| *now == 2);
        gate.add_permits(1);
    }
    gate.add_permits(1);
    (0..10).for_each(|number| store.wait_for_state(number, Committed));
    running.wait_for_shutdown().unwrap();
    assert_eq!(ledger.at_once.get(), (0, 2));
}
