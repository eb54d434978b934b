use std::{thread, time::Duration};

use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use grid_batch_core::{
    BatchState, Change, ChangeOutcome, Decision, Event, Evidence, Hold, LedgerStatus, Outcome,
    Stale, TakenBatch,
};

use crate::fixture::{Database, StoreExt, TestStore, batch, happened, id, on_both, service};

on_both! {
    held_batch_keeps_its_state_and_has_time_and_reason,
    second_hold_keeps_time_and_reason_of_the_first,
    hold_ends_when_the_state_changes,
    only_polled_batches_can_be_held,
    held_batches_are_listed_by_service,
    operator_decides_that_a_batch_was_committed,
    operator_decides_that_a_batch_is_absent,
    operator_decides_that_a_batch_is_invalid,
    decision_about_a_batch_not_held_changes_nothing,
    one_of_two_concurrent_decisions_applies,
    decision_about_another_attempt_is_refused,
    operator_decides_invalid_though_an_attempt_may_arrive,
}

/// SQLite does not let a transaction write that began as a reading one while others write.
#[test]
fn decision_waits_for_another_connection_that_writes() {
    let db = Database::sqlite();
    let store = db.open();
    let taken = in_doubt(&store);
    store.hold(&taken, "no evidence");
    let mut writer = SqliteConnection::establish(db.file().to_str().unwrap()).unwrap();
    writer.batch_execute("begin immediate").unwrap();
    thread::scope(|scope| {
        let decide = || store.decide(&taken.service_id, &taken.batch_id, 1, Decision::Absent);
        let decision = scope.spawn(decide);
        // A decision that does not wait fails within this time. One that waits is never too late.
        thread::sleep(Duration::from_millis(300));
        writer.batch_execute("commit").unwrap();
        let outcome = decision.join().unwrap().unwrap();
        assert!(matches!(outcome, ChangeOutcome::Applied { .. }), "{outcome:?}");
    });
}

/// A batch in doubt, and another behind it.
fn in_doubt(store: &TestStore) -> TakenBatch {
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Ambiguous);
    taken
}

fn held(db: &Database, reason: &str) -> Option<Hold> {
    Some(Hold { since: db.now(), reason: reason.to_owned() })
}

fn held_batch_keeps_its_state_and_has_time_and_reason(db: &Database) {
    let store = db.open();
    let cases = [
        (BatchState::InDoubt, Outcome::Ambiguous, LedgerStatus::NotReported),
        (BatchState::Pending, Outcome::Accepted, LedgerStatus::Pending),
        (BatchState::Valid, Outcome::Accepted, LedgerStatus::Valid),
    ];
    for (number, (state, outcome, status)) in (1..).zip(cases) {
        let name = format!("s::{number}");
        store.add_all(&[batch(&name, number)]);
        let taken = store.take_one(&name);
        store.outcome(&taken, outcome);
        store.status(&taken, status);
        db.later(1);
        let recorded = store.hold(&taken, "no evidence \0");
        assert_eq!(recorded, ChangeOutcome::Applied { state, next_waits: false });
        let stored = store.one(&name, number);
        assert_eq!(stored.progress.state, state);
        assert_eq!(stored.held, held(db, "no evidence \u{fffd}"));
        assert_eq!(stored.checked_at, Some(db.now()));
        assert!(store.take(&[&name]).is_empty());
    }
}

fn second_hold_keeps_time_and_reason_of_the_first(db: &Database) {
    let store = db.open();
    let taken = in_doubt(&store);
    store.hold(&taken, "first");
    let first = held(db, "first");
    db.later(60);
    store.hold(&taken, "second");
    store.status(&taken, LedgerStatus::NotReported);
    store.evidence(&taken, Evidence::Inconclusive);
    assert_eq!(store.one("a::b", 1).held, first);
    assert_eq!(db.open().one("a::b", 1).held, first);
}

fn hold_ends_when_the_state_changes(db: &Database) {
    let store = db.open();
    let taken = in_doubt(&store);
    store.hold(&taken, "no evidence");
    store.evidence(&taken, Evidence::Present);
    assert_eq!(store.one("a::b", 1).held, None);
    store.hold(&taken, "it does not move");
    store.evidence(&taken, Evidence::Absent);
    assert_eq!(store.one("a::b", 1).held, None);

    let again = store.take_one("a::b");
    store.outcome(&again, Outcome::Accepted);
    assert_eq!(store.one("a::b", 1).held, None);
    store.hold(&again, "once more");
    store.status(&again, LedgerStatus::Committed);
    assert_eq!(store.one("a::b", 1).held, None);
    assert_eq!(store.one("a::b", 2).held, None);
    assert!(store.held_batches(None, 9).unwrap().is_empty());
}

fn only_polled_batches_can_be_held(db: &Database) {
    let store = db.open();
    store.add_all(&[1, 2, 3].map(|number| batch(&format!("s::{number}"), number)));
    store.worker().take(3).unwrap();
    let [delayed, commit_proven] = ["s::1", "s::2"].map(|name| store.take_one(name));
    let held = |taken: &TakenBatch, event| {
        let hold = Some("too early".to_owned());
        store.record_one(Change { hold, ..happened(taken, event) })
    };
    held(&delayed, Event::Outcome { attempt: 1, outcome: Outcome::Busy });
    held(&commit_proven, Event::status(LedgerStatus::Committed));
    let new = TakenBatch { service_id: service("s::3"), batch_id: id(3), attempt: 0, ..delayed };
    let refused = store.hold(&new, "too early");
    assert!(matches!(refused, ChangeOutcome::Stale(Stale::Transition(_))), "{refused:?}");
    assert!(store.held_batches(None, 9).unwrap().is_empty());
}

fn held_batches_are_listed_by_service(db: &Database) {
    let store = db.open();
    for (number, name) in [(1, "c"), (2, "a"), (3, "d"), (4, "b")] {
        store.add_all(&[batch(name, number)]);
        let taken = store.take_one(name);
        store.outcome(&taken, Outcome::Ambiguous);
        if name != "d" {
            store.hold(&taken, name);
        }
    }
    let listed = |after: Option<&str>, limit| -> Vec<String> {
        let held = store.held_batches(after.map(service).as_ref(), limit).unwrap();
        held.into_iter().map(|batch| batch.held.unwrap().reason).collect()
    };
    assert_eq!(listed(None, 9), ["a", "b", "c"]);
    assert_eq!(listed(None, 2), ["a", "b"]);
    assert_eq!(listed(Some("b"), 2), ["c"]);
}

fn outcomes(store: &TestStore, number: u64) -> Vec<String> {
    let details = store.details(&service("a::b"), &id(number)).unwrap().unwrap();
    details.failed_attempts.into_iter().map(|attempt| attempt.outcome).collect()
}

fn operator_decides_that_a_batch_was_committed(db: &Database) {
    let store = db.open();
    let taken = in_doubt(&store);
    store.hold(&taken, "no evidence");
    let decided = store
        .decide(&taken.service_id, &taken.batch_id, taken.attempt, Decision::Committed)
        .unwrap();
    assert_eq!(decided, ChangeOutcome::Applied { state: BatchState::Committed, next_waits: true });
    assert_eq!(outcomes(&store, 1), ["outcome unknown, then committed, decided by an operator"]);
    assert_eq!(store.take_one("a::b").batch_id, id(2));
}

fn operator_decides_that_a_batch_is_absent(db: &Database) {
    let store = db.open();
    let taken = in_doubt(&store);
    store.hold(&taken, "no evidence");
    let decided =
        store.decide(&taken.service_id, &taken.batch_id, taken.attempt, Decision::Absent).unwrap();
    assert_eq!(decided, ChangeOutcome::Applied { state: BatchState::Absent, next_waits: false });
    assert_eq!(outcomes(&store, 1), ["outcome unknown, then absent, decided by an operator"]);
    let again = store.take_one("a::b");
    assert_eq!((again.batch_id, again.attempt), (id(1), 2));
}

fn operator_decides_that_a_batch_is_invalid(db: &Database) {
    let store = db.open();
    let taken = in_doubt(&store);
    store.hold(&taken, "no evidence");
    let decided =
        store.decide(&taken.service_id, &taken.batch_id, taken.attempt, Decision::Invalid).unwrap();
    assert_eq!(decided, ChangeOutcome::Applied { state: BatchState::Invalid, next_waits: true });
    assert_eq!(outcomes(&store, 1), ["outcome unknown, then invalid, decided by an operator"]);
    let receipts = store.details(&service("a::b"), &id(1)).unwrap().unwrap().receipts;
    assert_eq!(receipts[0].error_message, "an operator decided that the ledger rejected it");
    assert_eq!(store.take_one("a::b").batch_id, id(2));
}

fn decision_about_a_batch_not_held_changes_nothing(db: &Database) {
    let store = db.open();
    let taken = in_doubt(&store);
    let decide = |name, number, decision| {
        let attempt = u32::from(number == 1);
        store.decide(&service(name), &id(number), attempt, decision)
    };
    for decision in [Decision::Committed, Decision::Absent] {
        let not_held = |state| ChangeOutcome::Stale(Stale::NotHeld { state });
        let before = store.details(&service("a::b"), &id(1)).unwrap();
        assert_eq!(decide("a::b", 1, decision).unwrap(), not_held(BatchState::InDoubt));
        assert_eq!(decide("a::b", 2, decision).unwrap(), not_held(BatchState::New));
        assert_eq!(decide("a::b", 9, decision).unwrap(), ChangeOutcome::NotFound);
        assert_eq!(decide("c::d", 1, decision).unwrap(), ChangeOutcome::NotFound);
        assert_eq!(store.details(&service("a::b"), &id(1)).unwrap(), before);
    }
    store.hold(&taken, "no evidence");
    store.status(&taken, LedgerStatus::Committed);
    let too_late = decide("a::b", 1, Decision::Absent).unwrap();
    let ChangeOutcome::Stale(stale) = too_late else { panic!("{too_late:?}") };
    assert_eq!(
        stale.to_string(),
        "the batch is committed and not held: there is nothing to decide"
    );
}

fn one_of_two_concurrent_decisions_applies(db: &Database) {
    let store = db.open();
    let taken = in_doubt(&store);
    store.hold(&taken, "no evidence");
    let decided = thread::scope(|scope| {
        let both = [Decision::Committed, Decision::Absent].map(|decision| {
            let (store, taken) = (&store, &taken);
            scope.spawn(move || {
                store.decide(&taken.service_id, &taken.batch_id, taken.attempt, decision).unwrap()
            })
        });
        both.map(|thread| thread.join().unwrap())
    });
    let applied = |decided: &&ChangeOutcome| matches!(decided, ChangeOutcome::Applied { .. });
    assert_eq!(decided.iter().filter(applied).count(), 1, "{decided:?}");
    assert_eq!(outcomes(&store, 1).len(), 1);
}

/// The second attempt of a batch is in doubt and held.
fn second_attempt_held(store: &TestStore) -> TakenBatch {
    let first = in_doubt(store);
    store.evidence(&first, Evidence::Absent);
    let second = store.take_one("a::b");
    store.outcome(&second, Outcome::Ambiguous);
    store.hold(&second, "no evidence");
    second
}

fn decision_about_another_attempt_is_refused(db: &Database) {
    let store = db.open();
    let second = second_attempt_held(&store);
    let before = store.details(&service("a::b"), &id(1)).unwrap();
    for decision in [Decision::Committed, Decision::Absent, Decision::Invalid] {
        let decided = store.decide(&second.service_id, &second.batch_id, 1, decision).unwrap();
        let ChangeOutcome::Stale(stale) = decided else { panic!("{decided:?}") };
        assert_eq!(stale.to_string(), "the decision is about attempt 1; the batch is at attempt 2");
    }
    assert_eq!(store.details(&service("a::b"), &id(1)).unwrap(), before);
}

fn operator_decides_invalid_though_an_attempt_may_arrive(db: &Database) {
    let store = db.open();
    let second = second_attempt_held(&store);
    assert!(store.one("a::b", 1).progress.earlier_may_arrive);
    let decided = store.decide(&second.service_id, &second.batch_id, 2, Decision::Invalid).unwrap();
    assert_eq!(decided, ChangeOutcome::Applied { state: BatchState::Invalid, next_waits: true });
    let last = outcomes(&store, 1).pop().unwrap();
    assert_eq!(last, "outcome unknown, then invalid, decided by an operator");
}
