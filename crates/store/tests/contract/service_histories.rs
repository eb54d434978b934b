//! What is known about the batches that services have ever committed.

use grid_batch_core::batches::{
    AddOutcome, BatchConflict, BatchState, Change, Event, IntakeStore, NewBatch,
};
use grid_batch_core::events::Recorded;
use grid_batch_core::ledger::{
    CommitHistory, GroupObserver, HistoryFacts, Outcome, SubmissionAnswer, SubmissionOutcome,
};
use grid_batch_core::queue::TakenBatch;
use grid_batch_core::{ItemId, ScopeId, ServiceScopeId};
use grid_batch_store::{DelayOptions, Store, StoreObserver};

use crate::fixture::{
    Database, StoreExt, TestStore, batch, by_program, happened, id, on_both, service,
};

on_both! {
    history_of_a_service_is_recorded,
    history_is_not_known_after_a_restore,
    anchor_ended_before_the_last_committed_batch_was_taken,
    anchor_is_not_removed,
    removed_committed_batches_are_committed_when_they_are_added_again,
    nothing_is_kept_of_a_service_without_a_history,
    applied_transactions_are_refused_at_their_service,
    transaction_is_not_taken_for_another_with_the_same_beginning,
    batch_that_its_client_declares_new_is_new,
    batch_that_is_not_proved_to_be_new_is_held_until_its_release,
    retry_does_not_send_a_batch_that_is_not_proved_to_be_new,
    attempt_that_may_have_been_accepted_was_proved_before,
}

const NAME: &str = "a::b";

fn facts(store: &Store, number: u64) -> HistoryFacts {
    store.read_history(&service(NAME), &id(number)).unwrap()
}

fn known(store: &Store) {
    CommitHistory::refuse_past_transactions(store);
    store.set_history_known(&[service(NAME)], true).unwrap();
}

/// The outcome of adding one batch.
fn add(store: &Store, new: NewBatch) -> Result<AddOutcome, BatchConflict> {
    let outcome = store.add(&[&[new]]).unwrap().remove(0);
    outcome.map(|outcomes| outcomes[0])
}

fn history_of_a_service_is_recorded(db: &Database) {
    let store = db.open();
    let is_known = || store.is_history_known(&service(NAME)).unwrap();
    assert_eq!((is_known(), facts(&store, 1)), (None, HistoryFacts::default()));
    for known in [true, false, true] {
        // One of them twice.
        store.set_history_known(&["a::b", "a::d", "a::b"].map(service), known).unwrap();
        assert_eq!((is_known(), facts(&store, 1).is_known), (Some(known), Some(known)));
    }
    let of_others = ["a::d", "a::c"].map(|name| store.is_history_known(&service(name)).unwrap());
    assert_eq!(of_others, [Some(true), None]);
}

fn history_is_not_known_after_a_restore(db: &Database) {
    let store = db.open();
    known(&store);
    store.set_history_known(&[service("a::c")], false).unwrap();
    let before = db.open().generation();
    drop(store);
    db.restored().mark_restored(true, &by_program()).unwrap();
    let store = db.open();
    assert_ne!(store.generation(), before);
    assert_eq!(store.is_history_known(&service(NAME)).unwrap(), None);
    assert_eq!(store.is_history_known(&service("a::c")).unwrap(), Some(false));
}

fn anchor_ended_before_the_last_committed_batch_was_taken(db: &Database) {
    let store = db.open();
    store.add_all(&[1, 2, 3, 4, 5].map(|number| batch(NAME, number)));
    let anchor = |store: &Store| facts(store, 5).anchor;
    store.commit_next(NAME);
    assert_eq!(anchor(&store), None, "it may have been committed while nothing was known");
    store.commit_next(NAME);
    assert_eq!(anchor(&store), Some(id(1)));
    store.outcome(&store.take_one(NAME), Outcome::Rejected);
    assert_eq!(anchor(&store), Some(id(1)));
    store.commit_next(NAME);
    assert_eq!(anchor(&store), Some(id(2)));
    store.commit_next(NAME);
    assert_eq!(anchor(&store), Some(id(4)));
    // This one was committed at an unknown time.
    known(&store);
    store.add_applied(&service(NAME), &batch(NAME, 6).transaction_ids).unwrap();
    store.add_all(&[batch(NAME, 6)]);
    assert_eq!(store.one(NAME, 6).progress.state, BatchState::Committed);
    assert_eq!(anchor(&store), Some(id(4)));
}

fn anchor_is_not_removed(db: &Database) {
    let store = db.open();
    known(&store);
    store.add_all(&[1, 2, 3, 4].map(|number| batch(NAME, number)));
    let committed = [(); 3].map(|()| store.commit_next(NAME));
    assert_eq!(committed, [1, 2, 3].map(id));
    store.outcome(&store.take_one(NAME), Outcome::Rejected);
    assert_eq!(store.remove_in_steps(db.later(1), 100), 2, "the first, and the invalid one");
    assert_eq!(facts(&store, 9).anchor, Some(id(2)));
    // It is the last batch to end as committed, but was not sent.
    assert_eq!(add(&store, batch(NAME, 1)), Ok(AddOutcome::Stored));
    assert_eq!(store.remove_in_steps(db.later(1), 100), 1);
    assert_eq!(facts(&store, 9).anchor, Some(id(2)));
}

fn removed_committed_batches_are_committed_when_they_are_added_again(db: &Database) {
    let store = db.open();
    known(&store);
    store.add_all(&[1, 2, 11, 12].map(|number| batch(NAME, number)));
    store.commit_next(NAME);
    store.outcome(&store.take_one(NAME), Outcome::Rejected);
    // The last two are kept.
    assert_eq!([(); 2].map(|()| store.commit_next(NAME)), [11, 12].map(id));
    assert_eq!(store.remove_in_steps(db.later(1), 100), 2);
    // The first one is next in its service; the second one waits behind it.
    for number in [3, 1] {
        assert_eq!(add(&store, batch(NAME, number)), Ok(AddOutcome::Stored));
    }
    let stored = store.one(NAME, 1);
    assert_eq!((stored.progress.state, stored.progress.attempts), (BatchState::Committed, 0));
    store.commit_next(NAME);
    let of_removed = batch(NAME, 1).transaction_ids;
    assert_eq!(store.remove_in_steps(db.later(1), 100), 2);
    assert_eq!(add(&store, batch(NAME, 1)), Ok(AddOutcome::Stored));
    assert_eq!(store.one(NAME, 1).progress.state, BatchState::Committed, "it would be next");
    assert_eq!(store.remove_in_steps(db.later(1), 100), 1);
    let mixed = [of_removed[0], id(77)].to_vec();
    let other = NewBatch { transaction_ids: mixed, ..batch(NAME, 9) };
    match add(&store, other) {
        Err(BatchConflict::AppliedBefore { transaction_id, .. }) => {
            assert_eq!(*transaction_id, of_removed[0]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(add(&store, batch(NAME, 2)), Ok(AddOutcome::Stored), "it was invalid");
    assert_eq!(add(&store, batch("a::c", 1)), Ok(AddOutcome::Stored), "another service");
    assert_eq!(store.one(NAME, 2).progress.state, BatchState::New);
    assert_eq!(db.number("select count(*) as number from past_transactions"), 4);
}

fn nothing_is_kept_of_a_service_without_a_history(db: &Database) {
    let store = db.open();
    store.add_all(&[batch(NAME, 1)]);
    store.commit_next(NAME);
    assert_eq!(store.remove_in_steps(db.later(1), 100), 1);
    assert_eq!(db.number("select count(*) as number from past_transactions"), 0);
    known(&store);
    assert_eq!(add(&store, batch(NAME, 1)), Ok(AddOutcome::Stored));
}

fn applied_transactions_are_refused_at_their_service(db: &Database) {
    let store = db.open();
    known(&store);
    let [first, second]: [ItemId; 2] = batch(NAME, 1).transaction_ids.try_into().unwrap();
    for _ in 0..2 {
        store.add_applied(&service(NAME), &[second, second]).unwrap();
    }
    match add(&store, batch(NAME, 1)) {
        Err(BatchConflict::AppliedBefore { transaction_id, .. }) => {
            assert_eq!(*transaction_id, second);
        }
        other => panic!("{other:?}"),
    }
    store.add_applied(&service("a::c"), &[first]).unwrap();
    assert_eq!(add(&store, batch(NAME, 2)), Ok(AddOutcome::Stored));
    // A stored batch does not change.
    store.add_applied(&service(NAME), &batch(NAME, 2).transaction_ids).unwrap();
    assert_eq!(add(&store, batch(NAME, 2)), Ok(AddOutcome::AlreadyStored));
}

/// A client that signs twice with the same nonce creates two transactions whose ids begin with the same 32 bytes.
fn transaction_is_not_taken_for_another_with_the_same_beginning(db: &Database) {
    let store = db.open();
    known(&store);
    let with_end = |end: u8| {
        let bytes: [u8; 64] = std::array::from_fn(|at| if at < 32 { 7 } else { end });
        ItemId::from_bytes(bytes)
    };
    let with_transaction =
        |number, end| NewBatch { transaction_ids: vec![with_end(end)], ..batch(NAME, number) };
    store.add_applied(&service(NAME), &[with_end(1)]).unwrap();
    store.add_all(&[with_transaction(1, 1), with_transaction(2, 2)]);
    let state = |number| store.one(NAME, number).progress.state;
    assert_eq!([1, 2].map(state), [BatchState::Committed, BatchState::New]);
}

fn batch_that_its_client_declares_new_is_new(db: &Database) {
    let store = db.open();
    store.add_all(&[NewBatch { declared_new: true, ..batch(NAME, 1) }, batch(NAME, 2)]);
    assert_eq!([1, 2].map(|number| facts(&store, number).is_new), [true, false]);
    store.commit_next(NAME);
    assert_eq!(store.remove_in_steps(db.later(1), 100), 1);
    assert_eq!(db.number("select count(*) as number from declared_new_batches"), 0);
}

/// Takes the batch, which the adapter then does not send.
fn take_unproved(store: &TestStore) -> TakenBatch {
    let taken = store.take_one(NAME);
    let options = DelayOptions::default();
    let observer = StoreObserver::new(store.clone().into_store(), options, |_: Recorded<'_>| ());
    let outcome = SubmissionOutcome {
        batch_header: taken.batch_id.to_string(),
        scope_id: ServiceScopeId::from_service_id(&taken.service_id).unwrap(),
        attempt_id: Some(taken.attempt_id()),
        deadline: taken.deadline,
        attempts: 1,
        answer: SubmissionAnswer {
            outcome: Outcome::NotProvedNew,
            status: None,
            message: Some("of the test".to_owned()),
            retry_after: None,
        },
    };
    observer.notify_group(&[outcome]).unwrap();
    taken
}

fn batch_that_is_not_proved_to_be_new_is_held_until_its_release(db: &Database) {
    let store = db.open();
    store.add_all(&[batch(NAME, 1)]);
    take_unproved(&store);
    let held = store.one(NAME, 1);
    assert_eq!(held.progress.state, BatchState::Delayed);
    let hold = held.held.unwrap();
    assert!(hold.until_decision && hold.reason.starts_with("not proved to be new: of the test; "));
    db.later(100);
    assert_eq!(store.take(&[NAME]), []);
    assert!(!facts(&store, 1).is_new);
    store.release_batch(&service(NAME), &id(1), None).unwrap();
    assert!(facts(&store, 1).is_new);
    assert_eq!(store.take_one(NAME).batch_id, id(1));
}

fn retry_does_not_send_a_batch_that_is_not_proved_to_be_new(db: &Database) {
    let store = db.open();
    store.add_all(&[batch(NAME, 1)]);
    take_unproved(&store);
    store.hold_batch(&service(NAME), &id(1), "another reason").unwrap();
    store.release_batch(&service(NAME), &id(1), None).unwrap();
    assert!(!facts(&store, 1).is_new, "only that hold was released");
    take_unproved(&store);
    assert!(store.one(NAME, 1).held.is_some());
    let decided =
        store.decide(&service(NAME), &id(1), 2, grid_batch_core::batches::Decision::Committed);
    decided.unwrap();
    assert_eq!(store.one(NAME, 1).progress.state, BatchState::Committed);
}

fn attempt_that_may_have_been_accepted_was_proved_before(db: &Database) {
    let store = db.open();
    store.add_all(&[batch(NAME, 1)]);
    let record = |taken: &TakenBatch, attempt, outcome| {
        let event = Event::Outcome { attempt, outcome };
        store.record_one(Change { retry_at: Some(db.now()), ..happened(taken, event) });
    };
    record(&store.take_one(NAME), 1, Outcome::Busy);
    let taken = store.take_one(NAME);
    assert!(!facts(&store, 1).is_new, "nothing can have accepted it");
    record(&taken, 2, Outcome::Ambiguous);
    store.evidence(&taken, grid_batch_core::evidence::Evidence::Absent);
    store.take_one(NAME);
    assert!(facts(&store, 1).is_new);
}
