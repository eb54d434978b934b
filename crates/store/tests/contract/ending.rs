use grid_batch_core::{BatchState, ChangeOutcome, Event, Evidence, LedgerStatus, Outcome};

use crate::fixture::{Database, StoreExt, batch, happened, id, on_both, service};

on_both! {
    ended_batch_is_replaced_by_the_next,
    service_is_idle_after_last_batch_until_next_add,
    committed_state_is_final,
    invalid_batch_is_never_retried,
    one_group_ends_batches_of_many_services,
    commit_proven_while_sending_ends_with_the_outcome,
}

fn ended_batch_is_replaced_by_the_next(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Accepted);
    let ended = store.status(&taken, LedgerStatus::Committed);
    assert_eq!(ended, ChangeOutcome::Applied { state: BatchState::Committed, next_waits: true });

    let next = store.one("a::b", 2);
    assert_eq!((next.progress.attempts, next.submitted_at, next.checked_at), (0, None, None));
    assert_eq!(store.take_one("a::b").batch_id, id(2));
}

fn service_is_idle_after_last_batch_until_next_add(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    let ended = store.outcome(&taken, Outcome::Rejected);
    assert_eq!(ended, ChangeOutcome::Applied { state: BatchState::Invalid, next_waits: false });
    assert_eq!(store.depth(&service("a::b")).unwrap(), 0);
    assert!(store.open_batches(&service("a::b"), 9).unwrap().is_empty());

    store.add_all(&[batch("a::b", 2)]);
    assert_eq!(store.commit_next("a::b"), id(2));
}

fn committed_state_is_final(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Ambiguous);
    store.status(&taken, LedgerStatus::Committed);
    let details = store.details(&service("a::b"), &id(1)).unwrap();
    let absent = Event::Evidence { attempt: 1, evidence: Evidence::Absent };
    for event in [
        Event::status(LedgerStatus::Invalid),
        Event::status(LedgerStatus::NotReported),
        Event::status(LedgerStatus::Committed),
        Event::OwnerLost { attempt: 1 },
        absent,
    ] {
        assert!(matches!(store.record_one(happened(&taken, event)), ChangeOutcome::Stale(_)));
    }
    assert_eq!(store.details(&service("a::b"), &id(1)).unwrap(), details);
}

fn invalid_batch_is_never_retried(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Accepted);
    store.status(&taken, LedgerStatus::Invalid);
    let absent = Event::Evidence { attempt: 1, evidence: Evidence::Absent };
    assert!(matches!(store.record_one(happened(&taken, absent)), ChangeOutcome::Stale(_)));
    db.later(1_000_000);
    assert!(store.take(&["a::b"]).is_empty());
    assert!(store.ready_services(None, 9).unwrap().is_empty());
}

fn one_group_ends_batches_of_many_services(db: &Database) {
    let store = db.open();
    let names: Vec<String> = (0..150).map(|number| format!("s::{number:03}")).collect();
    let all: Vec<_> = (0..300).map(|n| batch(&names[n as usize % 150], n)).collect();
    store.add_all(&all);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (round, waits) in [(0, true), (150, false)] {
        let taken = store.take(&names);
        let numbers: Vec<_> = taken.iter().map(|taken| taken.batch_id).collect();
        assert_eq!(numbers, (round..round + 150).map(id).collect::<Vec<_>>());
        let changes: Vec<_> = taken
            .iter()
            .flat_map(|taken| {
                let accepted = Event::Outcome { attempt: 1, outcome: Outcome::Accepted };
                [accepted, Event::status(LedgerStatus::Committed)].map(|e| happened(taken, e))
            })
            .collect();
        let recorded = store.record(&changes).unwrap();
        let ended = ChangeOutcome::Applied { state: BatchState::Committed, next_waits: waits };
        assert_eq!(recorded.iter().filter(|recorded| **recorded == ended).count(), 150);
    }
    assert!(store.depths(None, 9).unwrap().is_empty());
}

fn commit_proven_while_sending_ends_with_the_outcome(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let taken = store.take_one("a::b");
    let proved = store.status(&taken, LedgerStatus::Committed);
    assert_eq!(proved, ChangeOutcome::Applied { state: BatchState::Submitting, next_waits: false });
    assert!(store.take(&["a::b"]).is_empty());
    assert!(db.open().one("a::b", 1).progress.commit_proven);

    let sent = store.outcome(&taken, Outcome::Busy);
    assert_eq!(sent, ChangeOutcome::Applied { state: BatchState::Committed, next_waits: true });
    assert_eq!(store.take_one("a::b").batch_id, id(2));
}
