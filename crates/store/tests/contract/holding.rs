use std::{thread, time::Duration};

use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use grid_batch_core::batches::{
    BatchState, Change, ChangeOutcome, Decision, Event, Hold, LedgerStatus, OperatorDecision, Stale,
};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::{RoundStore, TakenBatch};

use crate::fixture::{
    Database, StoreExt, TestStore, batch, by_program, happened, id, on_both, service,
};

on_both! {
    held_batch_keeps_its_state_and_has_time_and_reason,
    second_hold_keeps_time_and_reason_of_the_first,
    hold_ends_when_the_state_changes,
    only_polled_batches_can_be_held,
    held_batches_are_listed_by_service,
    operator_decides_that_a_batch_was_committed,
    operator_decides_that_a_batch_is_absent,
    operator_decides_that_a_batch_is_invalid,
    any_open_batch_can_be_decided,
    refused_decision_says_why_and_changes_nothing,
    decision_after_the_end_is_refused,
    operator_can_end_a_batch_that_waits,
    batch_held_by_an_operator_is_not_sent,
    hold_of_a_batch_being_sent_begins_after_the_attempt,
    hold_until_a_decision_outlasts_evidence,
    restored_database_keeps_a_hold_until_a_decision,
    waiting_batch_is_held_when_its_turn_comes,
    waiting_batch_can_be_released,
    one_of_two_concurrent_decisions_applies,
    decision_about_another_attempt_is_refused,
    operator_decides_invalid_though_an_attempt_may_arrive,
}

/// On SQLite, a transaction that began with a read may be unable to write while others write.
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
        // A decision that does not wait fails within this time. A decision that waits is never too late.
        thread::sleep(Duration::from_millis(300));
        writer.batch_execute("commit").unwrap();
        let outcome = decision.join().unwrap().unwrap();
        assert!(matches!(outcome, ChangeOutcome::Applied { .. }), "{outcome:?}");
    });
}

/// A batch in doubt, and another one behind it.
fn in_doubt(store: &TestStore) -> TakenBatch {
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Ambiguous);
    taken
}

fn held(db: &Database, reason: &str) -> Option<Hold> {
    Some(Hold { since: db.now(), reason: reason.to_owned(), until_decision: false })
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

fn any_open_batch_can_be_decided(db: &Database) {
    let store = db.open();
    let decided = [
        (BatchState::New, Decision::Invalid, BatchState::Invalid),
        (BatchState::New, Decision::Committed, BatchState::Committed),
        (BatchState::Delayed, Decision::Invalid, BatchState::Invalid),
        (BatchState::Absent, Decision::Invalid, BatchState::Invalid),
        (BatchState::InDoubt, Decision::Absent, BatchState::Absent),
        (BatchState::Pending, Decision::Invalid, BatchState::Invalid),
        (BatchState::Valid, Decision::Committed, BatchState::Committed),
    ];
    for (number, (from, decision, to)) in (1..).zip(decided) {
        let name = format!("s::{number}");
        store.add_all(&[batch(&name, number), batch(&name, number + 100)]);
        let attempt = bring_to(&store, &name, from);
        assert_eq!(store.one(&name, number).progress.state, from);
        let decided = store.decide(&service(&name), &id(number), attempt, decision).unwrap();
        let next_waits = to.is_terminal();
        assert_eq!(decided, ChangeOutcome::Applied { state: to, next_waits }, "{from}, {decision}");
        assert_eq!(store.depth(&service(&name)).unwrap(), if next_waits { 1 } else { 2 });
        let next = store.take_one(&name);
        assert_eq!(next.batch_id, if next_waits { id(number + 100) } else { id(number) });
    }
}

/// Brings the head of a service to this state, and returns its attempt.
fn bring_to(store: &TestStore, name: &str, state: BatchState) -> u32 {
    if state == BatchState::New {
        return 0;
    }
    let taken = store.take_one(name);
    let outcome = match state {
        BatchState::Submitting => return taken.attempt,
        BatchState::Delayed => Outcome::Busy,
        BatchState::InDoubt | BatchState::Absent => Outcome::Ambiguous,
        BatchState::Pending | BatchState::Valid => Outcome::Accepted,
        BatchState::New | BatchState::Invalid | BatchState::Committed => panic!("{state}"),
    };
    store.outcome(&taken, outcome);
    match state {
        BatchState::Absent => store.evidence(&taken, Evidence::Absent),
        BatchState::Valid => store.status(&taken, LedgerStatus::Valid),
        _ => return taken.attempt,
    };
    taken.attempt
}

fn refused_decision_says_why_and_changes_nothing(db: &Database) {
    let store = db.open();
    let refusals = [
        (BatchState::New, "the batch is new, so it is not at the ledger"),
        (BatchState::Delayed, "the batch is delayed, so it is not at the ledger"),
        (BatchState::Absent, "the batch is absent, so it is not at the ledger"),
        (BatchState::Submitting, "the batch is being sent now"),
    ];
    for (number, (state, reason)) in (1..).zip(refusals) {
        let name = format!("s::{number}");
        store.add_all(&[batch(&name, number)]);
        let attempt = bring_to(&store, &name, state);
        let before = store.details(&service(&name), &id(number)).unwrap();
        let refused = store.decide(&service(&name), &id(number), attempt, Decision::Absent);
        let ChangeOutcome::Stale(stale) = refused.unwrap() else { panic!("{state} was decided") };
        assert!(stale.to_string().starts_with(reason), "{stale}");
        assert_eq!(store.details(&service(&name), &id(number)).unwrap(), before);
    }
    for (name, number) in [("s::1", 9), ("t", 1)] {
        let decided = store.decide(&service(name), &id(number), 0, Decision::Invalid).unwrap();
        assert_eq!(decided, ChangeOutcome::NotFound);
    }
}

fn decision_after_the_end_is_refused(db: &Database) {
    let store = db.open();
    let taken = in_doubt(&store);
    store.status(&taken, LedgerStatus::Committed);
    let too_late = store.decide(&taken.service_id, &taken.batch_id, 1, Decision::Absent).unwrap();
    let ChangeOutcome::Stale(stale) = too_late else { panic!("{too_late:?}") };
    assert_eq!(stale.to_string(), "the batch has ended as committed; this state is final");
    assert!(!held_by_operator(&store, 1), "it has ended");
}

fn operator_can_end_a_batch_that_waits(db: &Database) {
    let store = db.open();
    store.add_all(&[1, 2, 3].map(|number| batch("a::b", number)));
    let head = store.take_one("a::b");
    let reason = Some("not wanted any more".to_owned());
    let cancel = OperatorDecision { decision: Decision::Invalid, reason };
    let decided = store.decide(&service("a::b"), &id(2), 0, cancel).unwrap();
    let expected = ChangeOutcome::Applied { state: BatchState::Invalid, next_waits: false };
    assert_eq!(decided, expected);
    assert_eq!(store.depth(&service("a::b")).unwrap(), 2);
    let details = store.details(&service("a::b"), &id(2)).unwrap().unwrap();
    let receipt = "an operator decided that it is not sent to the ledger: not wanted any more";
    assert_eq!(details.receipts[0].error_message, receipt);
    assert_eq!(outcomes(&store, 2), ["invalid, decided by an operator"]);

    store.outcome(&head, Outcome::Accepted);
    store.status(&head, LedgerStatus::Committed);
    assert_eq!(store.take_one("a::b").batch_id, id(3));
}

/// Holds the batch of `a::b` with this number as an operator, and returns whether that was possible.
fn held_by_operator(store: &TestStore, number: u64) -> bool {
    let held = store.hold_batch(&service("a::b"), &id(number), "look first").unwrap();
    matches!(held, ChangeOutcome::Applied { .. })
}

fn batch_held_by_an_operator_is_not_sent(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    for state in [BatchState::New, BatchState::Delayed, BatchState::Absent] {
        bring_to(&store, "a::b", state);
        assert!(held_by_operator(&store, 1));
        db.later(60);
        assert!(store.take(&["a::b"]).is_empty(), "{state}");
        assert!(store.worker().ready_services(None, 9).unwrap().is_empty(), "{state}");
        let held = store.held_batches(None, 9).unwrap().remove(0).held.unwrap();
        assert_eq!(held.reason, "held by an operator: look first");
        let released = store.release_batch(&service("a::b"), &id(1), Some("it is fine")).unwrap();
        assert_eq!(released, ChangeOutcome::Applied { state, next_waits: false });
        assert!(store.held_batches(None, 9).unwrap().is_empty());
    }
    assert_eq!(store.take_one("a::b").batch_id, id(1));
    let log = outcomes(&store, 1);
    assert_eq!(log[0], "held by an operator, then released by an operator");
    let last =
        "outcome unknown, then absent, then held by an operator, then released by an operator";
    assert_eq!(log[2], last);
}

fn hold_of_a_batch_being_sent_begins_after_the_attempt(db: &Database) {
    let store = db.open();
    for (number, outcome) in (1..).zip([Outcome::NotSent, Outcome::Ambiguous, Outcome::Accepted]) {
        let name = format!("s::{number}");
        store.add_all(&[batch(&name, number)]);
        let taken = store.take_one(&name);
        let held = store.hold_batch(&service(&name), &id(number), "look first").unwrap();
        let state = BatchState::Submitting;
        assert_eq!(held, ChangeOutcome::Applied { state, next_waits: false });
        store.outcome(&taken, outcome);
        assert!(store.one(&name, number).held.is_some(), "{outcome}");
        store.evidence(&taken, Evidence::Absent);
        db.later(60);
        assert!(store.take(&[&name]).is_empty(), "{outcome}");
    }
}

fn hold_until_a_decision_outlasts_evidence(db: &Database) {
    let store = db.open();
    let taken = in_doubt(&store);
    store.hold(&taken, "evidence may end this");
    let until_decision = Change {
        hold: Some("it stopped a node".to_owned()),
        hold_until_decision: true,
        ..happened(&taken, Event::Evidence { attempt: 1, evidence: Evidence::StoppedNode })
    };
    store.record_one(until_decision);
    let hold = store.one("a::b", 1).held.unwrap();
    assert_eq!((hold.reason.as_str(), hold.until_decision), ("it stopped a node", true));
    for evidence in [Evidence::Absent, Evidence::Lost, Evidence::Repeatable, Evidence::Present] {
        store.evidence(&taken, evidence);
        let stored = db.open().one("a::b", 1);
        assert!(stored.progress.state.awaits_poller(), "{evidence:?}: {}", stored.progress.state);
        assert_eq!(stored.held.as_ref(), Some(&hold), "{evidence:?}");
    }
    store.status(&taken, LedgerStatus::Committed);
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Committed);
    assert_eq!(store.one("a::b", 2).held, None, "the next batch is not held");
}

fn restored_database_keeps_a_hold_until_a_decision(db: &Database) {
    let store = db.open();
    in_doubt(&store);
    assert!(held_by_operator(&store, 1));
    db.restored().mark_restored(true, &by_program()).unwrap();
    let hold = store.one("a::b", 1).held.unwrap();
    assert_eq!(hold.reason, "held by an operator: look first");
}

fn waiting_batch_is_held_when_its_turn_comes(db: &Database) {
    let store = db.open();
    let head = in_doubt(&store);
    assert!(held_by_operator(&store, 2));
    assert!(store.held_batches(None, 9).unwrap().is_empty());
    assert_eq!(store.waiting_holds().unwrap()[0].batch_id, id(2));
    let shown = store.details(&service("a::b"), &id(2)).unwrap().unwrap().batch.held.unwrap();
    assert_eq!(shown.reason, "held by an operator: look first");

    store.status(&head, LedgerStatus::Committed);
    assert!(store.waiting_holds().unwrap().is_empty());
    assert_eq!(store.one("a::b", 2).held, Some(shown));
    assert!(store.take(&["a::b"]).is_empty());
    store.release_batch(&service("a::b"), &id(2), None).unwrap();
    assert_eq!(store.take_one("a::b").batch_id, id(2));
}

fn waiting_batch_can_be_released(db: &Database) {
    let store = db.open();
    let head = in_doubt(&store);
    let release = || store.release_batch(&service("a::b"), &id(2), None).unwrap();
    let not_held = ChangeOutcome::Stale(Stale::NotHeld { state: BatchState::New });
    assert_eq!(release(), not_held);
    assert!(held_by_operator(&store, 2));
    assert_eq!(release(), ChangeOutcome::Applied { state: BatchState::New, next_waits: false });
    assert_eq!(release(), not_held);
    store.status(&head, LedgerStatus::Committed);
    assert_eq!(store.take_one("a::b").batch_id, id(2));
}

fn one_of_two_concurrent_decisions_applies(db: &Database) {
    let store = db.open();
    let taken = in_doubt(&store);
    store.hold(&taken, "no evidence");
    let decided = thread::scope(|scope| {
        let both = [Decision::Committed, Decision::Invalid].map(|decision| {
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
