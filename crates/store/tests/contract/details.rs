use std::time::Duration;

use grid_batch_core::batches::{BatchState, Change, Event, NewBatch, Receipt, StoredBatch};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::{CommitHistory, Outcome};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::Ahead;
use grid_batch_core::{ItemId, ServiceId};

use crate::fixture::{Database, StoreExt, batch, happened, id, on_both, service};

on_both! {
    details_include_attempts_and_receipts,
    details_count_the_batches_ahead,
    batches_ahead_are_counted_up_to_a_limit,
    found_batch_that_waits_has_its_hold,
    batches_are_found_by_their_transactions,
    batches_are_found_by_the_first_digits_of_their_ids,
    invalid_batch_always_has_a_receipt,
    only_the_latest_attempts_are_kept,
    unknown_batch_has_no_details,
    open_batches_are_read_in_order,
    absent_attempts_are_recorded,
    last_committed_batch_before_another_is_found,
}

fn details_include_attempts_and_receipts(db: &Database) {
    let store = db.open();
    let new = batch("a::b", 1);
    store.add_all(std::slice::from_ref(&new));
    let submitted_at = db.later(1);
    let first = store.take_one("a::b");
    let ended_at = db.later(1);
    let retry_at = ended_at.plus(Duration::from_secs(15));
    let busy = Event::Outcome { attempt: 1, outcome: Outcome::Busy };
    store.record_one(Change {
        error: Some("429".to_owned()),
        retry_at: Some(retry_at),
        ..happened(&first, busy)
    });
    db.later(20);
    let second = store.take_one("a::b");
    let rejected = Event::Outcome { attempt: 2, outcome: Outcome::Rejected };
    let receipt = |position: usize| Receipt {
        transaction_id: Some(new.transaction_ids[position]),
        error_message: format!("reason {position}"),
        error_data: vec![position as u8],
    };
    store.record_one(Change {
        receipts: vec![receipt(1), receipt(0), receipt(1)],
        ..happened(&second, rejected)
    });

    let details = store.details(&service("a::b"), &id(1)).unwrap().unwrap();
    assert_eq!(details.batch.progress.state, BatchState::Invalid);
    assert_eq!(details.transaction_ids, new.transaction_ids);
    assert_eq!(details.receipts, [receipt(1), receipt(0), receipt(1)]);
    let attempts: Vec<_> =
        details.failed_attempts.iter().map(|a| (a.attempt, a.outcome.as_str())).collect();
    assert_eq!(attempts, [(1, "busy"), (2, "rejected")]);
    let first_attempt = &details.failed_attempts[0];
    assert_eq!(
        (first_attempt.submitted_at, first_attempt.ended_at),
        (Some(submitted_at), ended_at)
    );
    assert_eq!(
        (first_attempt.error.as_deref(), first_attempt.next_try_at),
        (Some("429"), Some(retry_at))
    );
    assert_eq!(details.ahead, None);
}

fn details_count_the_batches_ahead(db: &Database) {
    let store = db.open();
    store.add_all(&[1, 2, 3, 4].map(|number| batch("a::b", number)));
    let ahead = |number| {
        let details = store.details(&service("a::b"), &id(number)).unwrap().unwrap();
        details.ahead.map(|ahead| (ahead.head.unwrap().batch_id, ahead.count))
    };
    let behind = |head, count| Some((id(head), count));
    let expected = [None, behind(1, 1), behind(1, 2), behind(1, 3)];
    assert_eq!([1, 2, 3, 4].map(ahead), expected);
    store.commit_next("a::b");
    assert_eq!([1, 2, 3, 4].map(ahead), [None, None, behind(2, 1), behind(2, 2)]);
}

fn batches_ahead_are_counted_up_to_a_limit(db: &Database) {
    let store = db.open();
    let count = Ahead::MAX_COUNTED + 3;
    store.add_all(&(1..=count).map(|number| batch("a::b", number)).collect::<Vec<_>>());
    store.add_all(&[batch("other::b", 1)]);
    store.commit_next("a::b");
    let numbers = [1, 2, 3, count - 1, count];
    let created_at = numbers.map(|number| store.one("a::b", number).created_at);
    let ahead: Vec<_> = store
        .ahead(&service("a::b"), &created_at)
        .unwrap()
        .into_iter()
        .map(|ahead| ahead.map(|ahead| (ahead.head.unwrap().batch_id, ahead.count, ahead.more)))
        .collect();
    let at_limit = |more| Some((id(2), Ahead::MAX_COUNTED, more));
    let expected = [None, None, Some((id(2), 1, false)), at_limit(false), at_limit(true)];
    assert_eq!(ahead, expected);
    assert_eq!(store.ahead(&service("a::b"), &[]).unwrap(), []);
    assert_eq!(store.ahead(&service("c::d"), &created_at[..1]).unwrap(), [None]);
}

fn found_batch_that_waits_has_its_hold(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    store.hold_batch(&service("a::b"), &id(2), "look first").unwrap();
    let reason = |number| store.find(&id(number)).unwrap().remove(0).held.map(|hold| hold.reason);
    assert_eq!([1, 2].map(reason), [None, Some("held by an operator: look first".to_owned())]);
    // The hold moves into the lane when its turn comes.
    store.commit_next("a::b");
    assert_eq!(reason(2).as_deref(), Some("held by an operator: look first"));
}

fn batches_are_found_by_their_transactions(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("c::d", 1), batch("a::b", 2)]);
    let transaction = |number| {
        let id = batch("a::b", number).batch_id;
        let found = store.find(&id).unwrap().remove(0);
        store.details(&found.service_id, &id).unwrap().unwrap().transaction_ids[0]
    };
    let find = |id: &ItemId| -> Vec<(ServiceId, ItemId)> {
        let found = store.find_by_transaction(id).unwrap();
        found.into_iter().map(|batch| (batch.service_id, batch.batch_id)).collect()
    };
    let first = batch("a::b", 1).batch_id;
    assert_eq!(find(&transaction(1)), [(service("a::b"), first), (service("c::d"), first)]);
    assert_eq!(find(&transaction(2)), [(service("a::b"), batch("a::b", 2).batch_id)]);
    assert_eq!(find(&first), [], "it is the id of a batch");
}

fn batches_are_found_by_the_first_digits_of_their_ids(db: &Database) {
    let store = db.open();
    let with_id = |name: &str, number, digits: &str| {
        let batch_id = format!("{digits:0<128}").parse().unwrap();
        NewBatch { batch_id, ..batch(name, number) }
    };
    let ids = ["5a5a5a5a1", "5a5a5a5a2f", "5a5a5a5b", "ffffffff"];
    store.add_all(&[
        with_id("a::b", 1, ids[0]),
        with_id("c::d", 2, ids[0]),
        with_id("a::b", 3, ids[1]),
        with_id("a::b", 4, ids[2]),
        with_id("a::b", 5, ids[3]),
    ]);
    let find = |digits: &str, service_id: Option<&str>, limit| -> Vec<String> {
        let service_id = service_id.map(service);
        let found = store.find_by_prefix(&digits.parse().unwrap(), service_id.as_ref(), limit);
        let name = |batch: StoredBatch| format!("{} {:.10}", batch.service_id, batch.batch_id);
        found.unwrap().into_iter().map(name).collect()
    };
    let [first, other, second] = ["a::b 5a5a5a5a10", "c::d 5a5a5a5a10", "a::b 5a5a5a5a2f"];
    assert_eq!(find("5a5a5a5a", None, 9), [first, other, second]);
    assert_eq!(find("5a5a5a5a", None, 2), [first, other]);
    assert_eq!(find("5a5a5a5a", Some("a::b"), 9), [first, second]);
    assert_eq!(find("5a5a5a5a2", None, 9), [second]);
    assert_eq!(find("ffffffff", None, 9), ["a::b ffffffff00"]);
    assert_eq!(find("5a5a5a5c", None, 9), [""; 0]);
    assert_eq!(find(&format!("{:0<128}", ids[0]), Some("c::d"), 9), [other]);
}

fn invalid_batch_always_has_a_receipt(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    store.outcome(&store.take_one("a::b"), Outcome::Rejected);
    let taken = store.take_one("a::b");
    let rejected = Event::Outcome { attempt: 1, outcome: Outcome::Rejected };
    store.record_one(Change { error: Some("400: no".to_owned()), ..happened(&taken, rejected) });
    let reason = |number| {
        let details = store.details(&service("a::b"), &id(number)).unwrap().unwrap();
        details.receipts.into_iter().map(|receipt| receipt.error_message).collect::<Vec<_>>()
    };
    assert_eq!(reason(1), ["the ledger gave no reason"]);
    assert_eq!(reason(2), ["400: no"]);
}

fn only_the_latest_attempts_are_kept(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    for _ in 0..130 {
        store.outcome(&store.take_one("a::b"), Outcome::NotSent);
    }
    let details = store.details(&service("a::b"), &id(1)).unwrap().unwrap();
    assert_eq!(details.batch.progress.attempts, 130);
    let attempts: Vec<u32> = details.failed_attempts.iter().map(|a| a.attempt).collect();
    assert_eq!(attempts, (31..=130).collect::<Vec<u32>>());
}

fn unknown_batch_has_no_details(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    assert_eq!(store.details(&service("a::b"), &id(2)).unwrap(), None);
    assert_eq!(store.details(&service("c::d"), &id(1)).unwrap(), None);
    assert_eq!(store.serialized_batch(&service("c::d"), &id(1)).unwrap(), None);
    assert!(store.find(&id(2)).unwrap().is_empty());
}

fn open_batches_are_read_in_order(db: &Database) {
    let store = db.open();
    store.add_all(&[9, 1, 5, 3].map(|number| batch("a::b", number)));
    store.commit_next("a::b");
    store.take_one("a::b");
    let open = |limit| -> Vec<_> {
        let open = store.open_batches(&service("a::b"), limit).unwrap();
        open.into_iter().map(|batch| (batch.batch_id, batch.progress.state)).collect()
    };
    let expected =
        [(id(1), BatchState::Submitting), (id(5), BatchState::New), (id(3), BatchState::New)];
    assert_eq!(open(9), expected);
    assert_eq!(open(2), expected[..2]);
}

fn absent_attempts_are_recorded(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    for first_outcome in [Outcome::Accepted, Outcome::Ambiguous] {
        let taken = store.take_one("a::b");
        store.outcome(&taken, first_outcome);
        let absent = Event::Evidence { attempt: taken.attempt, evidence: Evidence::Absent };
        store.record_one(happened(&taken, absent));
    }
    store.commit_next("a::b");
    // Two changes of one group are recorded in the same way.
    store.add_all(&[batch("a::b", 2)]);
    let taken = store.take_one("a::b");
    let unknown = Event::Outcome { attempt: 1, outcome: Outcome::Ambiguous };
    let absent = Event::Evidence { attempt: 1, evidence: Evidence::Absent };
    store.record(&[unknown, absent].map(|event| happened(&taken, event))).unwrap();

    let outcomes = |number| -> Vec<String> {
        let details = store.details(&service("a::b"), &id(number)).unwrap().unwrap();
        details.failed_attempts.into_iter().map(|attempt| attempt.outcome).collect()
    };
    assert_eq!(outcomes(1), ["absent", "outcome unknown, then absent"]);
    assert_eq!(outcomes(2), ["outcome unknown, then absent"]);
}

fn last_committed_batch_before_another_is_found(db: &Database) {
    let store = db.open();
    store.add_all(&[1, 2, 3, 4].map(|number| batch("a::b", number)));
    store.add_all(&[batch("other::b", 9)]);
    let before = |number| {
        let history = store.committed_before(&service("a::b"), &id(number)).unwrap();
        assert_eq!(history.since, [], "one batch at a time");
        history.before
    };
    assert_eq!(before(1), []);
    store.commit_next("other::b");
    store.commit_next("a::b");
    assert_eq!(before(2), [id(1)]);
    let taken = store.take_one("a::b");
    assert_eq!(before(2), [id(1)]);
    store.outcome(&taken, Outcome::Rejected);
    assert_eq!(before(3), [id(1)]);
    store.commit_next("a::b");
    assert_eq!(before(4), [id(3)]);
    assert_eq!(db.open().committed_before(&service("a::b"), &id(4)).unwrap().before, [id(3)]);
}
