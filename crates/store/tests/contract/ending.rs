use grid_batch_core::{BatchState, ChangeOutcome, Event, Evidence, LedgerStatus, Outcome};

use crate::fixture::{Database, StoreExt, batch, happened, id, on_both, service};

on_both! {
    the_end_of_a_batch_installs_the_next,
    the_last_batch_leaves_the_service_idle_and_the_next_one_starts_it_again,
    a_committed_batch_is_never_left,
    an_invalid_batch_is_never_tried_again,
    many_services_end_their_batches_in_one_group,
    a_batch_proved_committed_while_it_is_sent_keeps_its_service_until_it_was_sent,
}

fn the_end_of_a_batch_installs_the_next(db: &Database) {
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

fn the_last_batch_leaves_the_service_idle_and_the_next_one_starts_it_again(db: &Database) {
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

fn a_committed_batch_is_never_left(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Ambiguous);
    store.status(&taken, LedgerStatus::Committed);
    let story = store.details(&service("a::b"), &id(1)).unwrap();
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
    assert_eq!(store.details(&service("a::b"), &id(1)).unwrap(), story);
}

fn an_invalid_batch_is_never_tried_again(db: &Database) {
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

fn many_services_end_their_batches_in_one_group(db: &Database) {
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

fn a_batch_proved_committed_while_it_is_sent_keeps_its_service_until_it_was_sent(db: &Database) {
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
