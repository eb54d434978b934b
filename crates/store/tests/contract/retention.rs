use grid_batch_core::{AddOutcome, BatchState, Outcome};

use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    only_batches_ended_before_the_limit_are_removed,
    removal_deletes_all_rows_of_a_batch,
    step_is_bounded_and_the_next_continues,
    old_open_batch_does_not_block_removal,
    queue_continues_after_removal,
    removal_works_after_clock_was_ahead,
}

fn only_batches_ended_before_the_limit_are_removed(db: &Database) {
    let store = db.open();
    store.add_all(&[1, 2, 3, 4].map(|number| batch("a::b", number)));
    store.commit_next("a::b");
    let limit = db.later(10);
    store.commit_next("a::b");
    assert_eq!(store.remove_all_ended(limit, 100), 1);
    let left: Vec<_> = store.list(&Default::default(), None, 9).unwrap();
    let left: Vec<_> = left.into_iter().map(|b| (b.batch_id, b.progress.state)).collect();
    let expected =
        [(id(2), BatchState::Committed), (id(3), BatchState::New), (id(4), BatchState::New)];
    assert_eq!(left, expected);
}

fn removal_deletes_all_rows_of_a_batch(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    store.outcome(&store.take_one("a::b"), Outcome::NotSent);
    store.outcome(&store.take_one("a::b"), Outcome::Rejected);
    assert_eq!(store.remove_all_ended(db.later(1), 100), 1);
    for table in
        ["batches", "batch_payloads", "transactions", "transaction_receipts", "submission_attempts"]
    {
        // These statements succeed only if a row is left.
        let sql =
            format!("create table none_of_{table} as select 1 / count(*) as one from {table}");
        if db.is_postgres() {
            assert!(db.execute(&sql).unwrap_err().to_string().contains("division by zero"));
        } else {
            db.execute(&format!("create table none_of_{table} (one integer not null)")).unwrap();
            let sql = format!(
                "insert into none_of_{table} select nullif(1, 1 + count(*)) from {table} limit 1"
            );
            assert!(db.execute(&sql).is_err(), "{table}");
        }
    }
    assert_eq!(store.add(&[&[batch("a::b", 1)]]).unwrap(), [Ok(vec![AddOutcome::Stored])]);
}

fn step_is_bounded_and_the_next_continues(db: &Database) {
    let store = db.open();
    store
        .add_all(&(0..10).map(|number| batch(&format!("s::{number}"), number)).collect::<Vec<_>>());
    for number in 0..10 {
        store.commit_next(&format!("s::{number}"));
    }
    let before = db.later(1);
    let first = store.remove_ended(before, None, 4).unwrap();
    assert_eq!(first.batches, 4);
    let second = store.remove_ended(before, first.next, 4).unwrap();
    assert_eq!(second.batches, 4);
    let last = store.remove_ended(before, second.next, 4).unwrap();
    assert_eq!((last.batches, last.next), (2, None));
}

fn old_open_batch_does_not_block_removal(db: &Database) {
    let store = db.open();
    store.add_all(&[0, 1, 2, 3].map(|number| batch("stuck::one", number)));
    store.add_all(&[batch("a::b", 4)]);
    store.commit_next("a::b");
    assert_eq!(store.remove_all_ended(db.later(1), 2), 1);
    assert_eq!(store.depth(&service("stuck::one")).unwrap(), 4);
}

fn queue_continues_after_removal(db: &Database) {
    let store = db.open();
    store.add_all(&[1, 2, 3].map(|number| batch("a::b", number)));
    store.commit_next("a::b");
    assert_eq!(store.remove_all_ended(db.later(1), 9), 1);
    assert_eq!(store.commit_next("a::b"), id(2));
    store.add_all(&[batch("a::b", 4)]);
    assert_eq!([(); 2].map(|()| store.commit_next("a::b")), [id(3), id(4)]);
    assert_eq!(store.depth(&service("a::b")).unwrap(), 0);
}

fn removal_works_after_clock_was_ahead(db: &Database) {
    let store = db.open();
    let start = db.now();
    db.later(1_000_000);
    store.add_all(&[0, 1, 2, 3].map(|number| batch("stuck::one", number)));
    db.clock.set(start);
    store.add_all(&[batch("a::b", 4)]);
    store.commit_next("a::b");
    assert_eq!(store.remove_all_ended(db.later(1), 2), 1);
}
