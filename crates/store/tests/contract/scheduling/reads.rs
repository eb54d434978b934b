//! How much is read for an intake, a round and an end does not depend on the number of open batches.

use grid_batch_core::ItemId;
use grid_batch_core::batches::NewBatch;
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{RoundStore, StrategyKind};
use grid_batch_store::{ClaimOptions, ClaimStore, Store, StoreOptions};

use super::fixture::{SERVICE, address, writing};
use crate::{
    fixture::{Database, StoreExt, on_both, service},
    read_counts,
};

on_both! {
    reads_do_not_grow_with_batches_over_many_addresses,
    reads_do_not_grow_with_batches_over_one_address,
}

const FEW: u64 = 1_000;
const MANY: u64 = 10_000;

/// The factor by which reads may grow with more open batches, because indexes get deeper.
const MARGIN: f64 = 1.4;
const ALLOWANCE: u64 = 60;

fn reads_do_not_grow_with_batches_over_many_addresses(db: &Database) {
    expect_flat(db, |number| address(&format!("{:06x}", number * 7_919 % 10_000)));
}

fn reads_do_not_grow_with_batches_over_one_address(db: &Database) {
    expect_flat(db, |_| address("aa"));
}

/// The reads of an intake, a round, and an end.
fn expect_flat(db: &Database, address: impl Fn(u64) -> String) {
    let batch = |number: u64| {
        // Like signatures, the ids are spread over the index.
        let mut transaction = [0; 64];
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        transaction[..8].copy_from_slice(&spread.to_be_bytes());
        let transaction_ids = vec![ItemId::from_bytes(transaction)];
        NewBatch { transaction_ids, ..writing(number, &address(number)) }
    };
    let mut stored = 0;
    let reads = [FEW, MANY].map(|open| {
        add(db, (stored + 1..=open).map(&batch).collect());
        stored = open + 1;
        let _dead_rows = read_counts::keep_dead_rows(db);
        let intake = count_reads(db, |claims| claims.store().add_all(&[batch(stored)]));
        let round = count_reads(db, |claims| {
            let taken = claims.take_next(&[service(SERVICE)]).unwrap();
            claims.give_back(&taken).unwrap();
        });
        let end = count_reads(db, |claims| {
            let taken = claims.take_next(&[service(SERVICE)]).unwrap();
            claims.store().outcome(&taken[0], Outcome::Committed);
        });
        [("intake", intake), ("round", round), ("end", end)]
    });
    assert_as_many(reads[0], reads[1]);
}

/// Asserts that each kind of work reads as much with many batches as with few.
#[track_caller]
pub fn assert_as_many<const N: usize>(few: [(&str, u64); N], many: [(&str, u64); N]) {
    println!("reads with few open: {few:?}; with many: {many:?}");
    for ((name, before), (_, after)) in few.into_iter().zip(many) {
        let limit = (before as f64 * MARGIN) as u64 + ALLOWANCE;
        assert!(after <= limit, "{name} read {before}, and with many open {after}");
    }
}

fn add(db: &Database, batches: Vec<NewBatch>) {
    let store = db.open_scheduled(StrategyKind::Parallel, 20);
    for list in batches.chunks(1_000) {
        store.add_all(list);
        read_counts::analyze(db);
    }
    drop(store);
    read_counts::remove_dead_rows(db);
}

/// How much an instance that was just started reads.
pub fn count_reads(db: &Database, work: impl FnOnce(&ClaimStore)) -> u64 {
    count_reads_with(db, db.scheduled(StrategyKind::Parallel, 20), work)
}

/// The same with these rules.
pub fn count_reads_with(
    db: &Database,
    options: StoreOptions,
    work: impl FnOnce(&ClaimStore),
) -> u64 {
    read_counts::count(db, || {
        let store = Store::open(&db.url(), StoreOptions { connections: 1, ..options }).unwrap();
        let claims = ClaimStore::register(store, ClaimOptions::default()).unwrap();
        claims.take_services(&[service(SERVICE)]).unwrap();
        work(&claims);
        claims.release().unwrap();
    })
}
