use grid_batch_core::batches::{BatchState, ChangeOutcome, Event, LedgerStatus, Receipt, Stale};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::{BatchDetails, BatchQueryStore, CommitAfterInvalid};
use grid_batch_core::queue::TakenBatch;

use crate::fixture::{Database, StoreExt, TestStore, batch, happened, id, on_both, service};

on_both! {
    ended_batch_is_replaced_by_the_next,
    service_is_idle_after_last_batch_until_next_add,
    committed_state_is_final,
    invalid_batch_is_never_retried,
    one_group_ends_batches_of_many_services,
    commit_proven_while_sending_ends_with_the_outcome,
    invalid_batch_waits_while_an_earlier_may_arrive,
    rejected_batch_waits_while_an_earlier_may_arrive,
    commit_of_the_earlier_attempt_ends_the_batch,
    commit_after_invalid_is_recorded_once,
    commit_after_invalid_in_one_group_is_recorded,
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

/// A batch that was sent again after evidence that its first attempt was absent, and another one behind it.
fn sent_again(store: &TestStore) -> TakenBatch {
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let first = store.take_one("a::b");
    store.outcome(&first, Outcome::Ambiguous);
    store.evidence(&first, Evidence::Absent);
    store.take_one("a::b")
}

fn details(store: &TestStore) -> BatchDetails {
    store.details(&service("a::b"), &id(1)).unwrap().unwrap()
}

const WAITS: &str = "the ledger finds the batch invalid, which is not final while an earlier attempt \
                     may still arrive: too poor";

fn invalid_batch_waits_while_an_earlier_may_arrive(db: &Database) {
    let store = db.open();
    let second = sent_again(&store);
    store.outcome(&second, Outcome::Accepted);
    let mut invalid = happened(&second, Event::status(LedgerStatus::Invalid));
    let error_message = "too poor".to_owned();
    invalid.receipts = vec![Receipt { transaction_id: None, error_message, error_data: vec![] }];
    let waits = ChangeOutcome::Applied { state: BatchState::Pending, next_waits: false };
    assert_eq!(store.record_one(invalid.clone()), waits);
    let stored = db.open().one("a::b", 1);
    assert!(stored.progress.waits_for_earlier());
    assert_eq!(stored.last_error.as_deref(), Some(WAITS));
    assert_eq!(store.evidence(&second, Evidence::Absent), waits, "it is not sent again");
    assert!(store.take(&["a::b"]).is_empty());

    store.record_one(happened(&second, Event::EarlierCannotArrive { attempt: 2 }));
    let ended = ChangeOutcome::Applied { state: BatchState::Invalid, next_waits: true };
    assert_eq!(store.record_one(invalid), ended);
    assert_eq!(details(&store).receipts[0].error_message, "too poor");
    assert_eq!(store.take_one("a::b").batch_id, id(2));
}

fn rejected_batch_waits_while_an_earlier_may_arrive(db: &Database) {
    let store = db.open();
    let second = sent_again(&store);
    let mut rejected = happened(&second, Event::Outcome { attempt: 2, outcome: Outcome::Rejected });
    rejected.error = Some("too poor".to_owned());
    let waits = ChangeOutcome::Applied { state: BatchState::InDoubt, next_waits: false };
    assert_eq!(store.record_one(rejected), waits);
    assert_eq!(store.one("a::b", 1).last_error.as_deref(), Some(WAITS));

    store.record_one(happened(&second, Event::EarlierCannotArrive { attempt: 2 }));
    let ended = ChangeOutcome::Applied { state: BatchState::Invalid, next_waits: true };
    assert_eq!(store.evidence(&second, Evidence::Absent), ended);
    let details = details(&store);
    assert_eq!(details.receipts[0].error_message, WAITS, "it has the ledger's reason");
    let outcomes = details.failed_attempts.iter().map(|attempt| attempt.outcome.as_str());
    assert_eq!(outcomes.collect::<Vec<_>>(), ["outcome unknown, then absent", "rejected"]);
}

fn commit_of_the_earlier_attempt_ends_the_batch(db: &Database) {
    let store = db.open();
    let second = sent_again(&store);
    store.outcome(&second, Outcome::Accepted);
    store.status(&second, LedgerStatus::Invalid);
    let ended = ChangeOutcome::Applied { state: BatchState::Committed, next_waits: true };
    assert_eq!(store.status(&second, LedgerStatus::Committed), ended);
    let next = store.take_one("a::b");
    assert_eq!(next.batch_id, id(2));
    assert!(!store.one("a::b", 2).progress.earlier_may_arrive, "the next batch starts anew");
}

fn commit_after_invalid_is_recorded_once(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Rejected);
    assert_eq!(details(&store).commit_after_invalid, None);
    db.later(5);
    let first = store.evidence(&taken, Evidence::Committed);
    assert_eq!(first, ChangeOutcome::Stale(Stale::CommittedAfterInvalid));
    let report = CommitAfterInvalid { reported_at: db.now(), source: "evidence".to_owned() };
    db.later(5);
    let second = store.status(&taken, LedgerStatus::Committed);
    assert!(matches!(second, ChangeOutcome::Stale(Stale::Transition(_))), "{second:?}");
    let stored = details(&store);
    assert_eq!(stored.commit_after_invalid, Some(report));
    assert_eq!(stored.batch.progress.state, BatchState::Invalid);
    let shown = stored.batch.last_error.unwrap();
    assert!(shown.contains("the ledger reported later that it is committed"), "{shown}");
}

fn commit_after_invalid_in_one_group_is_recorded(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let taken = store.take_one("a::b");
    let rejected = Event::Outcome { attempt: 1, outcome: Outcome::Rejected };
    let events = [rejected, Event::status(LedgerStatus::Committed)];
    let recorded = store.record(&events.map(|event| happened(&taken, event))).unwrap();
    let ended = ChangeOutcome::Applied { state: BatchState::Invalid, next_waits: true };
    assert_eq!(recorded, [ended, ChangeOutcome::Stale(Stale::CommittedAfterInvalid)]);
    assert!(details(&store).commit_after_invalid.is_some());
}
