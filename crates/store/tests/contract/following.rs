use grid_batch_core::{
    BatchError, BatchId, BatchState, BatchUpdater, LedgerStatus, Outcome, PendingBatchStore,
    Receipt, StatusReport, Taken, Timestamp,
};

use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    the_least_recently_checked_come_first_then_the_order_of_submission,
    only_what_the_ledger_may_have_is_pending,
    a_batch_checked_too_recently_is_left_out,
    statuses_are_written_through_the_monitors_traits,
    an_answer_that_names_no_batch_is_an_error_that_changes_nothing,
    a_ledger_that_does_not_answer_keeps_no_other_waiting,
}

const EVER: Timestamp = Timestamp::from_micros(i64::MAX);

fn the_least_recently_checked_come_first_then_the_order_of_submission(db: &Database) {
    let store = db.open();
    let names = ["s::1", "s::2", "s::3", "s::4"];
    for (number, name) in (0..).zip(names) {
        store.add_all(&[batch(name, number)]);
    }
    // Submitted in the order 4, 3, 2, 1; then 4 is checked, and after it 1.
    let mut taken: Vec<_> = names
        .iter()
        .rev()
        .map(|name| {
            db.later(1);
            let taken = store.take_one(name);
            store.outcome(&taken, Outcome::Accepted);
            taken
        })
        .collect();
    taken.reverse();
    db.later(1);
    store.status(&taken[3], LedgerStatus::Unknown);
    db.later(1);
    store.status(&taken[0], LedgerStatus::Pending);

    let order = |limit| -> Vec<String> {
        let pending = store.get_pending_batch_ids(limit).unwrap();
        pending.iter().map(|pending| pending.get_service_id().to_owned()).collect()
    };
    assert_eq!(order(9), ["s::3", "s::2", "s::4", "s::1"]);
    assert_eq!(order(2), ["s::3", "s::2"]);
}

fn only_what_the_ledger_may_have_is_pending(db: &Database) {
    let store = db.open();
    let names = ["new", "with-submitter", "delayed", "doubt", "accepted", "valid", "ended"];
    for (number, name) in (0..).zip(names) {
        store.add_all(&[batch(name, number)]);
    }
    store.take(&["with-submitter"]);
    store.outcome(&store.take_one("delayed"), Outcome::Busy);
    store.outcome(&store.take_one("doubt"), Outcome::Unknown);
    store.outcome(&store.take_one("accepted"), Outcome::Accepted);
    let valid = store.take_one("valid");
    store.outcome(&valid, Outcome::Accepted);
    store.status(&valid, LedgerStatus::Valid);
    store.commit_next("ended");

    let mut pending: Vec<_> =
        store.pending(EVER, 99).unwrap().into_iter().map(|p| p.service_id.to_string()).collect();
    pending.sort();
    assert_eq!(pending, ["accepted", "doubt", "valid"]);
}

fn a_batch_checked_too_recently_is_left_out(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Accepted);
    let checked_at = db.later(1);
    store.status(&taken, LedgerStatus::Pending);
    assert!(store.pending(checked_at, 9).unwrap().is_empty());
    let [pending] = store.pending(db.later(1), 9).unwrap().try_into().unwrap();
    assert_eq!((pending.attempt, pending.epoch), (1, 0));
    assert_eq!(pending.get_id(), id(1).to_string());
}

fn statuses_are_written_through_the_monitors_traits(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("c::d", 2)]);
    for name in ["a::b", "c::d"] {
        store.outcome(&store.take_one(name), Outcome::Accepted);
    }
    let receipt = Receipt {
        transaction_id: Some(id(7)),
        error_message: "no such contract".to_owned(),
        error_data: Vec::new(),
    };
    let report = |number, status, receipts| StatusReport {
        batch_id: id(number).to_string(),
        status,
        receipts,
    };
    let invalid = report(1, LedgerStatus::Invalid, vec![receipt.clone()]);
    store.update_batch_statuses("a::b", &[invalid]).unwrap();
    // A batch of another service is not touched.
    store.update_batch_statuses("a::b", &[report(2, LedgerStatus::Committed, vec![])]).unwrap();

    let story = store.story(&service("a::b"), &id(1)).unwrap().unwrap();
    assert_eq!(story.batch.progress.state, BatchState::Invalid);
    assert_eq!(story.receipts, [receipt]);
    assert_eq!(store.one("c::d", 2).progress.state, BatchState::Pending);
}

fn an_answer_that_names_no_batch_is_an_error_that_changes_nothing(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    store.outcome(&store.take_one("a::b"), Outcome::Accepted);
    let good = StatusReport {
        batch_id: id(1).to_string(),
        status: LedgerStatus::Committed,
        receipts: vec![],
    };
    let bad = StatusReport { batch_id: "zz".to_owned(), ..good.clone() };
    let error = store.update_batch_statuses("a::b", &[good.clone(), bad]).unwrap_err();
    assert!(matches!(error, BatchError::InvalidAnswer(_)), "{error}");
    assert!(store.update_batch_statuses("no service", &[good]).is_err());
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Pending);
}

fn a_ledger_that_does_not_answer_keeps_no_other_waiting(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("dead::1", 1), batch("dead::2", 2), batch("live::1", 3)]);
    for name in ["dead::1", "dead::2", "live::1"] {
        store.outcome(&store.take_one(name), Outcome::Accepted);
    }
    let asked = store.get_pending_batch_ids(2).unwrap();
    db.later(1);
    store.mark_checked(&asked).unwrap();
    let next = store.get_pending_batch_ids(1).unwrap();
    assert_eq!(next[0].get_service_id(), "live::1");
    // Of a batch that has ended meanwhile nothing is noted.
    store.status(&happened_to(&asked[0]), LedgerStatus::Committed);
    let before = store.one("dead::1", 1);
    db.later(1);
    store.mark_checked(&asked).unwrap();
    assert_eq!(store.one("dead::1", 1), before);
}

/// The batch as it was taken.
fn happened_to(pending: &grid_batch_store::PendingBatch) -> Taken {
    Taken {
        service_id: pending.service_id.clone(),
        batch_id: pending.batch_id,
        attempt: pending.attempt,
        epoch: pending.epoch,
        serialized_batch: Vec::new(),
    }
}
