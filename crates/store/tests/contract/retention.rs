use std::{ops::Range, time::Duration};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::batches::{AddOutcome, BatchState, IntakeStore, RetentionStore};
use grid_batch_core::ledger::Outcome;

use crate::fixture::{Database, StoreExt, TestStore, batch, id, on_both, service};

on_both! {
    only_batches_ended_before_the_limit_are_removed,
    removal_deletes_all_rows_of_a_batch,
    step_is_bounded_and_the_next_continues,
    old_open_batch_does_not_block_removal,
    queue_continues_after_removal,
    removal_works_after_clock_was_ahead,
    walk_ends_at_young_batches,
    counting_finds_what_a_step_removes,
    one_pass_starts_in_an_interval,
    pass_starts_after_the_clock_was_set_back,
    locked_batch_is_skipped,
}

fn only_batches_ended_before_the_limit_are_removed(db: &Database) {
    let store = db.open();
    store.add_all(&[1, 2, 3, 4].map(|number| batch("a::b", number)));
    store.commit_next("a::b");
    let limit = db.later(10);
    store.commit_next("a::b");
    assert_eq!(store.remove_in_steps(limit, 100), 1);
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
    assert_eq!(store.remove_in_steps(db.later(1), 100), 1);
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
    assert_eq!(store.remove_in_steps(db.later(1), 2), 1);
    assert_eq!(store.depth(&service("stuck::one")).unwrap(), 4);
}

fn queue_continues_after_removal(db: &Database) {
    let store = db.open();
    store.add_all(&[1, 2, 3].map(|number| batch("a::b", number)));
    store.commit_next("a::b");
    assert_eq!(store.remove_in_steps(db.later(1), 9), 1);
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
    assert_eq!(store.remove_in_steps(db.later(1), 2), 1);
}

fn commit_numbers(store: &TestStore, numbers: Range<u64>) {
    let services = numbers.clone().map(|number| format!("s::{number:02}"));
    let batches: Vec<_> =
        numbers.zip(services).map(|(number, service)| batch(&service, number)).collect();
    store.add_all(&batches);
    for batch in &batches {
        store.commit_next(batch.service_id.as_str());
    }
}

fn walk_ends_at_young_batches(db: &Database) {
    let store = db.open();
    commit_numbers(&store, 0..6);
    let before = db.later(10);
    commit_numbers(&store, 6..20);
    db.later(10);
    let (mut steps, mut from) = (Vec::new(), None);
    loop {
        let removed = store.remove_ended(before, from, 4).unwrap();
        steps.push(removed.batches);
        from = removed.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(steps, [4, 2, 0], "the third step finds only young batches");
}

fn counting_finds_what_a_step_removes(db: &Database) {
    let store = db.open();
    let first_end = db.now();
    commit_numbers(&store, 0..3);
    store.add_all(&[batch("open::one", 50)]);
    let before = db.later(10);
    let found = store.count_removable(before, None, 2).unwrap();
    let bytes: usize = (0..2).map(|number| batch("s", number).serialized_batch.len()).sum();
    assert_eq!((found.batches, found.bytes), (2, bytes as u64));
    assert!(found.oldest_end.is_some_and(|end| first_end <= end && end < before));
    let removed = store.remove_ended(before, None, 2).unwrap();
    assert_eq!((removed.batches, removed.next), (found.batches, found.next));
    assert_eq!(store.count_removable(before, removed.next, 9).unwrap().batches, 1);
    assert_eq!(store.remove_in_steps(before, 9), 1);
    let nothing = store.count_removable(before, None, 9).unwrap();
    assert_eq!((nothing.batches, nothing.bytes, nothing.oldest_end), (0, 0, None));
}

const INTERVAL: Duration = Duration::from_secs(60);

fn one_pass_starts_in_an_interval(db: &Database) {
    let (store, other) = (db.open(), db.open());
    assert!(store.start_retention(INTERVAL).unwrap());
    assert!(!other.start_retention(INTERVAL).unwrap());
    db.later(59);
    assert!(!store.start_retention(INTERVAL).unwrap());
    db.later(1);
    assert!(other.start_retention(INTERVAL).unwrap());
    assert!(!store.start_retention(INTERVAL).unwrap());
}

fn pass_starts_after_the_clock_was_set_back(db: &Database) {
    let store = db.open();
    let start = db.now();
    db.later(1_000_000);
    assert!(store.start_retention(INTERVAL).unwrap());
    db.clock.set(start);
    assert!(store.start_retention(INTERVAL).unwrap());
}

/// On SQLite no rows are locked while another transaction writes, and the step waits for it.
fn locked_batch_is_skipped(db: &Database) {
    if !db.is_postgres() {
        return;
    }
    let store = db.open();
    commit_numbers(&store, 0..3);
    let before = db.later(10);
    let mut other = PgConnection::establish(&db.postgres_url()).unwrap();
    other
        .batch_execute("begin; select 1 from batches where service_id = 's::01' for update")
        .unwrap();
    assert_eq!(store.remove_in_steps(before, 9), 2);
    other.batch_execute("rollback").unwrap();
    assert_eq!(store.remove_in_steps(before, 9), 1);
}
