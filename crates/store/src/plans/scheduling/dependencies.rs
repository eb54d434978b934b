//! The statements about dependencies and halts.

use std::time::Duration;

use grid_batch_core::batches::{
    AddressPrefix, BatchConflict, DeclaredAccess, IntakeStore, NewBatch, SignerId,
};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::evidence::MissingTransactionStore;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::{BatchQueryStore, HaltCursor};
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use super::{address, end, take, writing};
use crate::{
    ClaimStore, Store,
    plans::{add, new_batch},
};

pub(super) fn halting() -> ServiceId {
    "plan::halting".parse().unwrap()
}

pub(super) fn halting_in_order() -> ServiceId {
    "plan::halting-in-order".parse().unwrap()
}

fn asking() -> ServiceId {
    "plan::asking".parse().unwrap()
}

fn dependent() -> ServiceId {
    "plan::dependent".parse().unwrap()
}

fn depending(service_id: ServiceId, number: u64, dependencies: &[ItemId]) -> NewBatch {
    let writes = [AddressPrefix::new(&address(number))];
    let access = DeclaredAccess::new([], writes, dependencies.iter().copied());
    NewBatch { declared_access: Some(access), ..new_batch(service_id, number) }
}

/// A transaction of the batch with this number.
fn transaction_of(service_id: ServiceId, number: u64) -> ItemId {
    new_batch(service_id, number).transaction_ids[0]
}

/// Adds 2,000 batches that miss transactions, and 300 that stop others.
pub(super) fn load(claims: &ClaimStore) {
    let store = claims.store();
    let missing: Vec<NewBatch> = (0..2_000)
        .map(|n| {
            let id = transaction_of(dependent(), 30_000 + n);
            let signer =
                Some(SignerId::from_bytes([u8::try_from(n % 50).unwrap(); SignerId::BYTES]));
            NewBatch { signer, ..depending(dependent(), 20_000 + n, &[id]) }
        })
        .collect();
    add(store, &missing);
    add(store, &[depending(super::parallel(), 22_700, &[transaction_of(dependent(), 44_002)])]);
    let stopping: Vec<NewBatch> =
        (0..300).map(|n| writing(halting(), 40_000 + n, &address(n))).collect();
    add(store, &stopping);
    claims.take_services(&[dependent(), halting(), halting_in_order()]).unwrap();
    for _ in 0..6 {
        end(store, &take(claims, halting(), 50), Outcome::Rejected);
    }
}

/// Processes dependencies from intake to their end, including operators' decisions.
pub(super) fn process(claims: &ClaimStore) {
    let store = claims.store();
    let pause = Duration::from_secs(60);
    assert_eq!(claims.missing_transactions(pause, 10).unwrap().len(), 10);
    claims.look_up_again(&[transaction_of(dependent(), 30_000)], pause).unwrap();
    assert!(claims.lookup_lag().unwrap().waiting > 1_900);
    assert_eq!(store.queue_counts().unwrap().incomplete, 2_001);
    claims.found_at_ledger(&[transaction_of(dependent(), 30_000)]).unwrap();
    add(store, &[new_batch(dependent(), 30_001)]);
    let two = [30_002, 30_003].map(|n| transaction_of(dependent(), n));
    add(store, &[depending(dependent(), 22_500, &two), new_batch(dependent(), 30_002)]);
    store.free_dependents(1_000).unwrap();
    claims.hold_missing(Duration::from_secs(3_600)).unwrap();
    end(store, &take(claims, dependent(), 1), Outcome::Rejected);
    store.free_dependents(1_000).unwrap();
    claims.hold_missing(Duration::ZERO).unwrap();
    let held = new_batch(dependent(), 21_999).batch_id;
    store.release_batch(&dependent(), &held, None).unwrap();
    process_invalid(claims);
    process_halts(claims);
}

/// Adds a batch that misses a transaction to a full queue, and counts what fills queues.
pub(super) fn process_full_queue(limited: &Store) {
    let missing = [transaction_of(dependent(), 44_001)];
    let signer = Some(SignerId::from_bytes([4; SignerId::BYTES]));
    let batch = NewBatch { signer, ..depending(dependent(), 44_000, &missing) };
    let refused = limited.add(&[&[batch]]).unwrap().remove(0);
    assert!(matches!(refused, Err(BatchConflict::QueueFull { .. })), "{refused:?}");
    let counts = limited.queue_counts().unwrap();
    assert!(counts.fullest.is_some_and(|queue| queue.incomplete > 0));
}

/// Asks the ledger about a transaction of an invalid batch.
fn process_invalid(claims: &ClaimStore) {
    let store = claims.store();
    add(store, &[writing(asking(), 43_000, &address(43_000))]);
    let transaction = transaction_of(asking(), 43_000);
    add(store, &[depending(asking(), 43_001, &[transaction])]);
    claims.take_services(&[asking()]).unwrap();
    end(store, &take(claims, asking(), 1), Outcome::Rejected);
    store.free_dependents(1_000).unwrap();
    claims.missing_transactions(Duration::ZERO, 10_000).unwrap();
    assert_eq!(claims.absent_at_ledger(&[transaction]).unwrap().ended, 1);
}

fn process_halts(claims: &ClaimStore) {
    let store = claims.store();
    let following: Vec<NewBatch> =
        (0..10).map(|n| writing(halting(), 41_000 + n, &address(n))).collect();
    add(store, &following);
    let first = store.halts(None, 2).unwrap();
    store.halts(Some(&HaltCursor::after(&first[1])), 2).unwrap();
    store.service_counts().unwrap();
    assert!(!store.services(false, None, 10).unwrap().is_empty());
    store.continue_after(&halting(), &first[0].batch.batch_id, Some("a reason")).unwrap();
    store.end_following(&halting(), &first[1].batch.batch_id, "a reason").unwrap();
    // Later batches do not wait for invalid ones whose followers end.
    let ending = new_batch(halting(), 40_050).batch_id;
    store.end_following(&halting(), &ending, "a reason").unwrap();
    add(store, &[writing(halting(), 41_100, &address(50)), new_batch(halting(), 41_101)]);
    let in_order: Vec<NewBatch> =
        (0..60).map(|n| writing(halting_in_order(), 42_000 + n, &address(n))).collect();
    add(store, &in_order);
    claims.take_services(&[halting_in_order()]).unwrap();
    end(store, &take(claims, halting_in_order(), 1), Outcome::Rejected);
    let stopping = in_order[0].batch_id;
    store.end_following(&halting_in_order(), &stopping, "a reason").unwrap();
    read_wait_reasons(claims, &following);
}

/// Asks why batches wait.
fn read_wait_reasons(claims: &ClaimStore, following: &[NewBatch]) {
    let store = claims.store();
    let times = |batches: &[NewBatch]| -> Vec<Timestamp> {
        let of = |batch: &NewBatch| store.find(&batch.batch_id).unwrap()[0].created_at;
        batches.iter().map(of).collect()
    };
    store.ahead(&halting(), &times(following)).unwrap();
    let missing = [new_batch(dependent(), 21_000)];
    store.ahead(&dependent(), &times(&missing)).unwrap();
    let waiting = store.open_batches(&super::parallel(), 2_000).unwrap().pop().unwrap();
    store.ahead(&super::parallel(), &[waiting.created_at]).unwrap();
}
