use std::time::Duration;

use grid_batch_core::ItemId;
use grid_batch_core::batches::{
    BatchState, Change, ChangeOutcome, Event, LedgerStatus, Progress, Receipt, Stale,
    TransitionError, transition,
};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::TakenBatch;

use crate::fixture::{Database, StoreExt, TestStore, batch, happened, id, on_both, service};

on_both! {
    every_transition_is_recorded_as_core_defines_it,
    outcome_of_an_earlier_attempt_changes_nothing,
    change_with_another_epoch_changes_nothing,
    batch_behind_the_head_cannot_be_changed,
    unknown_batch_is_not_found,
    taken_event_cannot_be_recorded,
    changes_of_a_group_are_recorded_independently,
    changes_of_one_batch_are_applied_in_order,
    errors_and_times_are_stored,
    ledger_messages_are_sanitized_and_truncated,
    check_constraints_refuse_impossible_rows,
}

/// Every event, for the current attempt and for another one.
fn events() -> Vec<Event> {
    let mut events = vec![Event::Taken, Event::DependencyInvalid];
    for status in [
        LedgerStatus::NotReported,
        LedgerStatus::Pending,
        LedgerStatus::Valid,
        LedgerStatus::Invalid,
        LedgerStatus::Committed,
    ] {
        events.push(Event::status(status));
    }
    for attempt in [1, 2] {
        events.push(Event::OwnerLost { attempt });
        events.push(Event::EarlierCannotArrive { attempt });
        for outcome in [
            Outcome::Accepted,
            Outcome::Busy,
            Outcome::NotSent,
            Outcome::Rejected,
            Outcome::Refused,
            Outcome::Ambiguous,
        ] {
            events.push(Event::Outcome { attempt, outcome });
        }
        for evidence in
            [Evidence::Committed, Evidence::Present, Evidence::Absent, Evidence::Inconclusive]
        {
            events.push(Event::Evidence { attempt, evidence });
        }
    }
    events
}

/// Brings the new batch of the service into a state, in its first attempt.
fn bring_to(store: &TestStore, name: &str, state: BatchState) -> Option<TakenBatch> {
    if state == BatchState::New {
        return None;
    }
    let taken = store.take_one(name);
    let outcome = |outcome| Event::Outcome { attempt: 1, outcome };
    let absent = Event::Evidence { attempt: 1, evidence: Evidence::Absent };
    let events = match state {
        BatchState::New | BatchState::Submitting => vec![],
        BatchState::Delayed => vec![outcome(Outcome::NotSent)],
        BatchState::InDoubt => vec![outcome(Outcome::Ambiguous)],
        BatchState::Absent => vec![outcome(Outcome::Ambiguous), absent],
        BatchState::Pending => vec![outcome(Outcome::Accepted)],
        BatchState::Valid => vec![outcome(Outcome::Accepted), Event::status(LedgerStatus::Valid)],
        BatchState::Invalid => vec![outcome(Outcome::Rejected)],
        BatchState::Committed => {
            vec![outcome(Outcome::Ambiguous), Event::status(LedgerStatus::Committed)]
        }
    };
    for event in events {
        store.record_one(happened(&taken, event));
    }
    Some(taken)
}

fn every_transition_is_recorded_as_core_defines_it(db: &Database) {
    let store = db.open();
    let cases: Vec<(BatchState, Event)> = BatchState::ALL
        .into_iter()
        .flat_map(|state| events().into_iter().map(move |event| (state, event)))
        .filter(|(_, event)| *event != Event::Taken)
        .collect();
    let all: Vec<_> = (0..).zip(&cases).map(|(n, _)| batch(&format!("s::{n}"), n)).collect();
    store.add_all(&all);

    for (number, (state, event)) in (0..).zip(cases) {
        let name = format!("s::{number}");
        bring_to(&store, &name, state);
        let before = store.one(&name, number).progress;
        let attempts = u32::from(state != BatchState::New);
        let earlier_may_arrive = state == BatchState::Absent;
        let progress = Progress { state, attempts, earlier_may_arrive, ..Progress::NEW };
        assert_eq!(before, progress, "{state:?}");

        let recorded = store.record_one(Change::new(service(&name), id(number), event));
        let after = store.one(&name, number).progress;
        match transition(before, event) {
            Ok(next) => {
                let done = ChangeOutcome::Applied { state: next.state, next_waits: false };
                assert_eq!((recorded, after), (done, next), "{state:?} {event:?}");
            }
            Err(_) if state == BatchState::Invalid && event.is_proof_of_commit() => {
                assert_eq!(recorded, ChangeOutcome::Stale(Stale::CommittedAfterInvalid));
                assert_eq!(after, before, "{state:?} {event:?}");
            }
            Err(error) => {
                assert_eq!(recorded, ChangeOutcome::Stale(Stale::Transition(error)));
                assert_eq!(after, before, "{state:?} {event:?}");
            }
        }
    }
}

fn outcome_of_an_earlier_attempt_changes_nothing(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let first = store.take_one("a::b");
    store.outcome(&first, Outcome::NotSent);
    let second = store.take_one("a::b");
    assert!(matches!(store.outcome(&first, Outcome::Rejected), ChangeOutcome::Stale(_)));
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Submitting);
    assert!(matches!(store.outcome(&second, Outcome::Accepted), ChangeOutcome::Applied { .. }));
}

fn change_with_another_epoch_changes_nothing(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    db.execute("update lanes set epoch = 7").unwrap();
    let stale = store.outcome(&taken, Outcome::Accepted);
    assert_eq!(stale, ChangeOutcome::Stale(Stale::Epoch { given: 1, present: 7 }));
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Submitting);
    let in_time = TakenBatch { epoch: 7, ..taken };
    assert!(matches!(store.outcome(&in_time, Outcome::Accepted), ChangeOutcome::Applied { .. }));
}

fn batch_behind_the_head_cannot_be_changed(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    for event in events() {
        let recorded = store.record_one(Change::new(service("a::b"), id(2), event));
        assert!(matches!(recorded, ChangeOutcome::Stale(_)), "{event:?}: {recorded:?}");
    }
    assert_eq!(store.one("a::b", 2).progress, Progress::NEW);
}

fn unknown_batch_is_not_found(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let event = Event::status(LedgerStatus::Committed);
    for (name, number) in [("a::b", 2), ("c::d", 1)] {
        let recorded = store.record_one(Change::new(service(name), id(number), event));
        assert_eq!(recorded, ChangeOutcome::NotFound);
    }
}

fn taken_event_cannot_be_recorded(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let recorded = store.record_one(Change::new(service("a::b"), id(1), Event::Taken));
    assert!(matches!(recorded, ChangeOutcome::Stale(_)));
    assert_eq!(store.one("a::b", 1).progress, Progress::NEW);
}

fn changes_of_a_group_are_recorded_independently(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::1", 1), batch("a::2", 2), batch("a::2", 3), batch("a::3", 4)]);
    let taken = store.take(&["a::1", "a::2", "a::3"]);
    let outcome =
        |taken: &TakenBatch, outcome| happened(taken, Event::Outcome { attempt: 1, outcome });
    let recorded = store
        .record(&[
            outcome(&taken[0], Outcome::Accepted),
            outcome(&taken[1], Outcome::Rejected),
            happened(
                &TakenBatch { batch_id: id(99), ..taken[0].clone() },
                Event::OwnerLost { attempt: 1 },
            ),
            happened(&taken[2], Event::OwnerLost { attempt: 5 }),
        ])
        .unwrap();
    assert_eq!(
        recorded[0],
        ChangeOutcome::Applied { state: BatchState::Pending, next_waits: false }
    );
    assert_eq!(
        recorded[1],
        ChangeOutcome::Applied { state: BatchState::Invalid, next_waits: true }
    );
    assert_eq!(recorded[2], ChangeOutcome::NotFound);
    assert!(matches!(recorded[3], ChangeOutcome::Stale(_)));
}

fn changes_of_one_batch_are_applied_in_order(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let taken = store.take_one("a::b");
    let accepted = Event::Outcome { attempt: 1, outcome: Outcome::Accepted };
    let states: Vec<ChangeOutcome> = store
        .record(&[
            happened(&taken, accepted),
            happened(&taken, Event::status(LedgerStatus::Valid)),
            happened(&taken, Event::status(LedgerStatus::Committed)),
            happened(&taken, Event::status(LedgerStatus::Invalid)),
            happened(&taken, Event::Taken),
        ])
        .unwrap();
    assert_eq!(states[1], ChangeOutcome::Applied { state: BatchState::Valid, next_waits: false });
    assert_eq!(
        states[2],
        ChangeOutcome::Applied { state: BatchState::Committed, next_waits: true }
    );
    let ended = TransitionError::Ended { state: BatchState::Committed };
    assert_eq!(states[3..], [ChangeOutcome::Stale(ended.into()); 2]);
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Committed);
    assert_eq!(store.take_one("a::b").batch_id, id(2));
}

fn errors_and_times_are_stored(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    let busy = Event::Outcome { attempt: 1, outcome: Outcome::Busy };
    let retry_at = db.later(2).plus(Duration::from_secs(15));
    store.record_one(Change {
        error: Some("429: the queue is full".to_owned()),
        retry_at: Some(retry_at),
        ..happened(&taken, busy)
    });
    let stored = store.one("a::b", 1);
    assert_eq!(stored.last_error.as_deref(), Some("429: the queue is full"));
    assert_eq!(stored.next_try_at, Some(retry_at));

    let submitted_at = db.later(20);
    let again = store.take_one("a::b");
    store.outcome(&again, Outcome::Accepted);
    let checked_at = db.later(1);
    store.status(&again, LedgerStatus::NotReported);
    let stored = store.one("a::b", 1);
    assert_eq!(stored.submitted_at, Some(submitted_at));
    assert_eq!((stored.checked_at, stored.next_try_at), (Some(checked_at), None));
    assert_eq!(stored.last_error.as_deref(), Some("429: the queue is full"));

    let ended_at = db.later(1);
    store.status(&again, LedgerStatus::Committed);
    let stored = store.one("a::b", 1);
    assert_eq!((stored.submitted_at, stored.ended_at), (Some(submitted_at), Some(ended_at)));
    assert_eq!((stored.checked_at, stored.progress.attempts), (Some(ended_at), 2));
    assert_eq!(stored.last_error.as_deref(), Some("429: the queue is full"));
}

/// In a table without a rowid, each search would compare whole rows, and read further pages for that.
#[test]
fn batch_with_an_error_fits_into_a_page_of_sqlite() {
    let db = Database::sqlite();
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    let busy = Event::Outcome { attempt: 1, outcome: Outcome::Busy };
    store.record_one(Change { error: Some("x".repeat(500)), ..happened(&taken, busy) });
    let pages =
        "select count(*) as number from dbstat where name = 'lanes' and pagetype = 'overflow'";
    assert_eq!(db.number(pages), 0);
}

fn ledger_messages_are_sanitized_and_truncated(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    let receipt = Receipt {
        transaction_id: None,
        error_message: format!("nul \0 and ü, {}", "ß".repeat(5_000)),
        error_data: vec![0, 255, 0],
    };
    let rejected = Event::Outcome { attempt: 1, outcome: Outcome::Rejected };
    store.record_one(Change {
        error: Some("\0".to_owned()),
        receipts: vec![receipt],
        ..happened(&taken, rejected)
    });
    let details = store.details(&service("a::b"), &id(1)).unwrap().unwrap();
    assert_eq!(details.batch.last_error.as_deref(), Some("\u{fffd}"));
    assert!(details.receipts[0].error_message.starts_with("nul \u{fffd} and ü, ßßß"));
    assert!(details.receipts[0].error_message.len() <= 4_100);
    assert_eq!(details.receipts[0].error_data, [0, 255, 0]);
}

fn check_constraints_refuse_impossible_rows(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    for (submitted, status) in [
        ("true", "DELAYED"),
        ("false", "PENDING"),
        ("false", "VALID"),
        ("true", "COMMITTED"),
        ("true", "LOST"),
    ] {
        let sql = format!("update lanes set submitted = {submitted}, dlt_status = '{status}'");
        assert!(db.execute(&sql).is_err(), "{sql}");
    }
    for sql in [
        "update batches set dlt_status = 'COMMITTED'",
        "update batches set ended_at = 5",
        "update batches set ended_at = 5, dlt_status = 'PENDING'",
        "update lanes set batch_seq = null",
        "update lanes set held_at = 5, held_reason = 'not polled'",
        "update lanes set submitted = true, dlt_status = 'PENDING', held_at = 5",
        "insert into batches (service_id, batch_id, created_at)
             select service_id, batch_id, created_at + 1 from batches",
    ] {
        assert!(db.execute(sql).is_err(), "{sql}");
    }
    let _: ItemId = store.commit_next("a::b");
}
