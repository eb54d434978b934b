use std::time::Duration;

use grid_batch_core::{
    BatchState, Change, ChangeOutcome, Event, Evidence, HeaderId, LedgerStatus, Outcome, Progress,
    Receipt, Stale, TakenBatch, TransitionError, transition,
};

use crate::fixture::{Database, StoreExt, TestStore, batch, happened, id, on_both, service};

on_both! {
    every_transition_is_recorded_as_core_draws_it,
    a_late_outcome_changes_nothing,
    a_change_from_another_epoch_changes_nothing,
    a_batch_that_waits_its_turn_cannot_be_changed,
    a_batch_that_is_not_there_is_not_found,
    that_a_batch_was_taken_cannot_be_recorded,
    a_group_is_recorded_each_for_itself,
    several_changes_of_one_batch_follow_one_another,
    errors_and_times_are_kept,
    a_ledgers_words_are_kept_as_far_as_they_can_be,
    the_tables_refuse_what_the_design_does_not_draw,
}

/// Every event, about the present attempt and about another.
fn events() -> Vec<Event> {
    let mut events = vec![Event::Taken];
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

/// Leads a fresh batch of the service to a state, at its first attempt.
fn lead_to(store: &TestStore, name: &str, state: BatchState) -> Option<TakenBatch> {
    if state == BatchState::New {
        return None;
    }
    let taken = store.take_one(name);
    let outcome = |outcome| Event::Outcome { attempt: 1, outcome };
    let absent = Event::Evidence { attempt: 1, evidence: Evidence::Absent };
    let way = match state {
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
    for event in way {
        store.record_one(happened(&taken, event));
    }
    Some(taken)
}

fn every_transition_is_recorded_as_core_draws_it(db: &Database) {
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
        lead_to(&store, &name, state);
        let before = store.one(&name, number).progress;
        let attempts = u32::from(state != BatchState::New);
        assert_eq!(before, Progress { state, attempts, commit_proven: false }, "{state:?}");

        let recorded = store.record_one(Change::new(service(&name), id(number), event));
        let after = store.one(&name, number).progress;
        match transition(before, event) {
            Ok(next) => {
                let done = ChangeOutcome::Applied { state: next.state, next_waits: false };
                assert_eq!((recorded, after), (done, next), "{state:?} {event:?}");
            }
            Err(error) => {
                assert_eq!(recorded, ChangeOutcome::Stale(Stale::Transition(error)));
                assert_eq!(after, before, "{state:?} {event:?}");
            }
        }
    }
}

fn a_late_outcome_changes_nothing(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let first = store.take_one("a::b");
    store.outcome(&first, Outcome::NotSent);
    let second = store.take_one("a::b");
    assert!(matches!(store.outcome(&first, Outcome::Rejected), ChangeOutcome::Stale(_)));
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Submitting);
    assert!(matches!(store.outcome(&second, Outcome::Accepted), ChangeOutcome::Applied { .. }));
}

fn a_change_from_another_epoch_changes_nothing(db: &Database) {
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

fn a_batch_that_waits_its_turn_cannot_be_changed(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    for event in events() {
        let recorded = store.record_one(Change::new(service("a::b"), id(2), event));
        assert!(matches!(recorded, ChangeOutcome::Stale(_)), "{event:?}: {recorded:?}");
    }
    assert_eq!(store.one("a::b", 2).progress, Progress::NEW);
}

fn a_batch_that_is_not_there_is_not_found(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let event = Event::status(LedgerStatus::Committed);
    for (name, number) in [("a::b", 2), ("c::d", 1)] {
        let recorded = store.record_one(Change::new(service(name), id(number), event));
        assert_eq!(recorded, ChangeOutcome::NotFound);
    }
}

fn that_a_batch_was_taken_cannot_be_recorded(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let recorded = store.record_one(Change::new(service("a::b"), id(1), Event::Taken));
    assert!(matches!(recorded, ChangeOutcome::Stale(_)));
    assert_eq!(store.one("a::b", 1).progress, Progress::NEW);
}

fn a_group_is_recorded_each_for_itself(db: &Database) {
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

fn several_changes_of_one_batch_follow_one_another(db: &Database) {
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

fn errors_and_times_are_kept(db: &Database) {
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

fn a_ledgers_words_are_kept_as_far_as_they_can_be(db: &Database) {
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
    let story = store.details(&service("a::b"), &id(1)).unwrap().unwrap();
    assert_eq!(story.batch.last_error.as_deref(), Some("\u{fffd}"));
    assert!(story.receipts[0].error_message.starts_with("nul \u{fffd} and ü, ßßß"));
    assert!(story.receipts[0].error_message.len() <= 4_100);
    assert_eq!(story.receipts[0].error_data, [0, 255, 0]);
}

fn the_tables_refuse_what_the_design_does_not_draw(db: &Database) {
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
        "update lanes set held_at = 5, held_reason = 'not at the ledger'",
        "update lanes set submitted = true, dlt_status = 'PENDING', held_at = 5",
        "insert into transactions select 999, 0, transaction_id from transactions limit 1",
        "insert into batch_payloads select 999, serialized_batch from batch_payloads",
        "insert into batches (service_id, batch_id, created_at)
             select service_id, batch_id, created_at + 1 from batches",
    ] {
        assert!(db.execute(sql).is_err(), "{sql}");
    }
    let _: HeaderId = store.commit_next("a::b");
}
