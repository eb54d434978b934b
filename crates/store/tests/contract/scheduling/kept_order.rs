//! Evidence about batches of a pipeline.

use grid_batch_core::batches::{BatchState, LedgerStatus};
use grid_batch_core::events::Recorded;
use grid_batch_core::evidence::{Evidence, LedgerQuestionStore, Resolution};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{RoundStore, ServiceShare, StrategyKind, TakenBatch};
use grid_batch_store::MonitorStore;

use super::fixture::{SERVICE, ScheduledExt, numbers, restart, writing};
use crate::fixture::{Database, StoreExt, TestStore, id, on_both, service};

on_both! {
    lost_tail_is_absent_together,
    absence_waits_for_earlier_batches,
    batch_is_held_when_a_later_one_was_committed,
    smaller_window_after_a_restart_keeps_the_order,
    nothing_is_held_in_another_strategy,
}

/// Four batches at the ledger.
fn sent(db: &Database, strategy: StrategyKind) -> (TestStore, Vec<TakenBatch>) {
    let store = db.open_scheduled(strategy, 9);
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "cc"), writing(4, "dd")]);
    let mut sent = Vec::new();
    while sent.len() < 4 {
        for taken in store.take_up_to(9) {
            store.outcome(&taken, Outcome::Accepted);
            sent.push(taken);
        }
    }
    db.later(1);
    (store, sent)
}

/// Resolves these batches with this evidence, in one call.
fn resolve(monitor: &MonitorStore, batches: &[u64], evidence: Evidence) {
    let ids: Vec<String> = batches.iter().map(|number| id(*number).to_string()).collect();
    let unresolved = monitor.get_unresolved_batches(SERVICE, &ids).unwrap();
    assert_eq!(unresolved.len(), batches.len());
    let with_evidence = |batch| (batch, Resolution::Evidence(evidence));
    monitor.resolve(&unresolved.into_iter().map(with_evidence).collect::<Vec<_>>()).unwrap();
}

fn states(store: &TestStore) -> Vec<BatchState> {
    let open = store.open_batches(&service(SERVICE), 9).unwrap();
    open.into_iter().map(|batch| batch.progress.state).collect()
}

fn lost_tail_is_absent_together(db: &Database) {
    use BatchState::Absent;
    let (store, sent) = sent(db, StrategyKind::Pipeline);
    store.status(&sent[0], LedgerStatus::Committed);
    resolve(&store.monitor(), &[2, 3, 4], Evidence::Lost);
    assert_eq!(states(&store), [Absent; 3]);
    for number in 2..=4 {
        let taken = store.take_up_to(9);
        assert_eq!(numbers(&taken), [number]);
        store.outcome(&taken[0], Outcome::Accepted);
    }
}

fn absence_waits_for_earlier_batches(db: &Database) {
    use BatchState::{Absent, Pending};
    let (store, _) = sent(db, StrategyKind::Pipeline);
    resolve(&store.monitor(), &[3, 4], Evidence::Lost);
    assert_eq!(states(&store), [Pending; 4], "1 and 2 may be lost, too");
    resolve(&store.monitor(), &[1, 2], Evidence::Lost);
    assert_eq!(states(&store), [Absent, Absent, Pending, Pending]);
    assert!(store.take_up_to(9).is_empty(), "3 and 4 may be at the ledger");
    resolve(&store.monitor(), &[3, 4], Evidence::Lost);
    assert_eq!(states(&store), [Absent; 4]);
    assert_eq!(numbers(&store.take_up_to(9)), [1]);
}

fn batch_is_held_when_a_later_one_was_committed(db: &Database) {
    let (store, sent) = sent(db, StrategyKind::Pipeline);
    store.status(&sent[2], LedgerStatus::Committed);
    db.later(1);
    resolve(&store.monitor(), &[1, 2, 4], Evidence::Lost);
    let open = store.open_batches(&service(SERVICE), 9).unwrap();
    let held: Vec<_> = open.iter().map(|batch| batch.held.as_ref()).collect();
    for hold in &held[..2] {
        let hold = hold.unwrap();
        assert!(hold.until_decision && hold.reason.contains(&id(3).to_string()), "{hold:?}");
    }
    assert_eq!(held[2], None, "no later one than 4 was committed");
    assert!(store.take_up_to(9).is_empty(), "nothing passes what is held");

    for number in [1, 2] {
        store
            .decide(&service(SERVICE), &id(number), 1, grid_batch_core::batches::Decision::Absent)
            .unwrap();
    }
    db.later(1);
    let taken = store.take_up_to(9);
    assert_eq!(numbers(&taken), [1]);
    store.outcome(&taken[0], Outcome::Accepted);
    resolve(&store.monitor(), &[1], Evidence::Lost);
    assert_eq!(
        numbers(&store.take_up_to(9)),
        [1],
        "the other one was committed before this attempt"
    );
}

fn smaller_window_after_a_restart_keeps_the_order(db: &Database) {
    let (store, sent) = sent(db, StrategyKind::Pipeline);
    store.status(&sent[2], LedgerStatus::Committed);
    db.later(1);
    let claims = restart(db, store, StrategyKind::Pipeline, 1);
    let monitor = MonitorStore::new(claims.clone(), |_: Recorded<'_>| ());
    resolve(&monitor, &[1, 2, 4], Evidence::Lost);
    let open = claims.store().open_batches(&service(SERVICE), 9).unwrap();
    let held: Vec<bool> = open.iter().map(|batch| batch.held.is_some()).collect();
    assert_eq!(held, [true, true, false]);
    let share = ServiceShare { service_id: service(SERVICE), batches: 9 };
    let round = claims.take_round(&[share], &mut |_| true).unwrap();
    assert!(round.batches.is_empty(), "nothing is sent behind 3");
}

fn nothing_is_held_in_another_strategy(db: &Database) {
    use BatchState::{Absent, Pending};
    let (store, sent) = sent(db, StrategyKind::Parallel);
    store.status(&sent[2], LedgerStatus::Committed);
    db.later(1);
    resolve(&store.monitor(), &[1], Evidence::Lost);
    assert_eq!(states(&store), [Absent, Pending, Pending]);
}
