//! Which batches of a service wait for which, in the parallel strategy.

use grid_batch_core::batches::NewBatch;

use super::fixture::{SERVICE, ScheduledExt, accessing, address, numbers, writing};
use crate::fixture::{Database, StoreExt, batch, on_both, service};

on_both! {
    batches_of_different_addresses_are_taken_together,
    conflicting_batches_are_taken_in_order,
    batches_that_read_the_same_are_taken_together,
    writer_waits_for_all_earlier_readers,
    reader_waits_for_the_writer_before_it_only,
    prefix_covers_longer_addresses,
    longer_address_waits_for_a_prefix,
    prefix_stored_later_finds_longer_addresses,
    batch_without_declared_access_conflicts_with_all,
    batch_waits_for_those_it_conflicts_with_only,
    hot_address_makes_one_edge_for_each_batch,
    conflicts_within_one_list_are_found,
    more_lengths_than_are_stored_still_conflict,
    services_do_not_conflict,
    ended_batches_leave_no_rows,
}

fn batches_of_different_addresses_are_taken_together(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "cc")]);
    assert_eq!(numbers(&store.take_up_to(9)), [1, 2, 3]);
}

fn conflicting_batches_are_taken_in_order(db: &Database) {
    let store = db.open_parallel();
    for number in 1..=4 {
        store.add_all(&[writing(number, "aa")]);
    }
    for number in 1..=4 {
        let taken = store.take_up_to(9);
        assert_eq!(numbers(&taken), [number]);
        assert!(store.take_up_to(9).is_empty());
        store.commit(&taken);
    }
    assert_eq!(db.scheduling_rows(), 0);
}

fn batches_that_read_the_same_are_taken_together(db: &Database) {
    let store = db.open_parallel();
    let reading = |number, own| accessing(SERVICE, number, &["aa"], &[own]);
    store.add_all(&[reading(1, "01"), reading(2, "02"), reading(3, "03")]);
    assert_eq!(numbers(&store.take_up_to(9)), [1, 2, 3]);
}

fn writer_waits_for_all_earlier_readers(db: &Database) {
    let store = db.open_parallel();
    let reading = |number, own| accessing(SERVICE, number, &["aa"], &[own]);
    store.add_all(&[reading(1, "01"), reading(2, "02"), writing(3, "aa")]);
    let readers = store.take_up_to(9);
    assert_eq!(numbers(&readers), [1, 2]);
    store.commit(&readers[1..]);
    assert!(store.take_up_to(9).is_empty(), "the first reader is under way");
    store.commit(&readers[..1]);
    assert_eq!(numbers(&store.take_up_to(9)), [3]);
}

fn reader_waits_for_the_writer_before_it_only(db: &Database) {
    let store = db.open_parallel();
    let reading = |number, own| accessing(SERVICE, number, &["aa"], &[own]);
    store.add_all(&[reading(1, "01"), writing(2, "aa"), reading(3, "03"), reading(4, "04")]);
    let first = store.take_up_to(9);
    assert_eq!(numbers(&first), [1]);
    store.commit(&first);
    let writer = store.take_up_to(9);
    assert_eq!(numbers(&writer), [2]);
    store.commit(&writer);
    assert_eq!(numbers(&store.take_up_to(9)), [3, 4]);
}

fn prefix_covers_longer_addresses(db: &Database) {
    let store = db.open_parallel();
    // From then on, the index has rows for prefixes of this length.
    store.add_all(&[writing(9, "ffff")]);
    store.commit(&store.take_up_to(9));
    let (one, other) = (address("aabb01"), address("aabb02"));
    store.add_all(&[writing(1, &one), writing(2, &other), writing(3, &address("cc"))]);
    store.add_all(&[accessing(SERVICE, 4, &["aabb"], &["dddd"])]);
    let first = store.take_up_to(9);
    assert_eq!(numbers(&first), [1, 2, 3], "4 reads what 1 and 2 write");
    store.commit(&first[..2]);
    assert_eq!(numbers(&store.take_up_to(9)), [4]);
}

fn longer_address_waits_for_a_prefix(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aabb"), writing(2, &address("aabb01")), writing(3, "aacc")]);
    let first = store.take_up_to(9);
    assert_eq!(numbers(&first), [1, 3]);
    store.commit(&first[..1]);
    assert_eq!(numbers(&store.take_up_to(9)), [2]);
}

/// The first batch has no rows of this length, because the length came into use after it.
fn prefix_stored_later_finds_longer_addresses(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, &address("aabb01"))]);
    store.add_all(&[writing(2, "aabb")]);
    store.add_all(&[writing(3, &address("aabb02")), writing(4, "aa")]);
    for number in 1..=4 {
        let taken = store.take_up_to(9);
        assert_eq!(numbers(&taken), [number]);
        store.commit(&taken);
    }
}

fn batch_without_declared_access_conflicts_with_all(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), batch(SERVICE, 2), writing(3, "bb"), writing(4, "cc")]);
    let first = store.take_up_to(9);
    assert_eq!(numbers(&first), [1]);
    store.commit(&first);
    let all = store.take_up_to(9);
    assert_eq!(numbers(&all), [2]);
    store.commit(&all);
    assert_eq!(numbers(&store.take_up_to(9)), [3, 4]);
}

fn batch_waits_for_those_it_conflicts_with_only(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[
        writing(1, "aa"),
        writing(2, "bb"),
        writing(3, "aa"),
        writing(4, "bb"),
        writing(5, "cc"),
    ]);
    let first = store.take_up_to(9);
    assert_eq!(numbers(&first), [1, 2, 5]);
    store.commit(&first[1..2]);
    assert_eq!(numbers(&store.take_up_to(9)), [4], "1 is under way");
}

fn hot_address_makes_one_edge_for_each_batch(db: &Database) {
    let store = db.open_parallel();
    let many: Vec<NewBatch> = (1..=50).map(|number| writing(number, &address("aa"))).collect();
    for list in many.chunks(7) {
        store.add_all(list);
    }
    let edges = db.number(
        "select count(distinct blocker_seq) as number from waiting_batches
         where blocker_seq is not null",
    );
    assert_eq!(edges, 49, "each waits for the one before it");
}

fn conflicts_within_one_list_are_found(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[
        writing(1, &address("aa")),
        writing(2, "aa"),
        batch(SERVICE, 3),
        writing(4, "bb"),
        writing(5, &address("bb")),
    ]);
    for number in 1..=5 {
        let taken = store.take_up_to(9);
        assert_eq!(numbers(&taken), [number]);
        store.commit(&taken);
    }
}

fn more_lengths_than_are_stored_still_conflict(db: &Database) {
    let store = db.open_parallel();
    let text = "abcdef0123456789abcdef0123456789";
    let order: Vec<u64> = (1..=8).map(|n| 2 * n).chain((1..=8).map(|n| 2 * n - 1)).collect();
    let batches: Vec<NewBatch> =
        order.iter().map(|number| writing(*number, &text[..2 * *number as usize])).collect();
    for list in batches.chunks(8) {
        store.add_all(list);
    }
    let stored = || db.number("select count(*) as number from address_lengths");
    assert_eq!(stored(), 8);
    let mut ended = Vec::new();
    while ended.len() < 16 {
        let taken = store.take_up_to(99);
        assert_eq!(taken.len(), 1, "all conflict");
        ended.extend(numbers(&taken));
        store.commit(&taken);
    }
    assert_eq!(ended, order);
    assert_eq!((stored(), db.scheduling_rows()), (0, 0));
}

fn services_do_not_conflict(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[accessing("a::1", 1, &[], &["aa"]), accessing("a::2", 2, &[], &["aa"])]);
    assert_eq!(store.take(&["a::1", "a::2"]).len(), 2);
}

fn ended_batches_leave_no_rows(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[
        writing(1, "aa"),
        accessing(SERVICE, 2, &["aabb", "cc"], &["dd"]),
        batch(SERVICE, 3),
        writing(4, &address("aabbcc")),
    ]);
    let mut rounds = 0;
    while store.depth(&service(SERVICE)).unwrap() > 0 {
        let taken = store.take_up_to(9);
        assert!(!taken.is_empty(), "{rounds} rounds");
        store.commit(&taken);
        rounds += 1;
    }
    assert_eq!(db.scheduling_rows(), 0);
}
