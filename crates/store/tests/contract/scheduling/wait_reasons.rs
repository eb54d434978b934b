//! Why a batch waits, in a service with several batches under way.

use grid_batch_core::{AddressPrefix, Ahead, BatchState, LedgerStatus, Strategy, WaitReason};

use super::fixture::{SERVICE, ScheduledExt, depending, transaction_of, writing};
use crate::fixture::{Database, StoreExt, TestStore, id, on_both, service};

on_both! {
    conflicting_batch_names_the_other_one_and_the_address,
    dependent_names_the_transaction_and_its_batch,
    missing_transaction_is_named,
    halted_batch_waits_for_an_operator,
    free_batch_without_a_lane_says_so,
    serial_batch_waits_for_its_turn,
    batch_in_a_lane_has_nothing_ahead,
    position_counts_the_open_batches_before_it,
}

fn ahead(store: &TestStore, number: u64) -> Option<Ahead> {
    let created_at = store.one(SERVICE, number).created_at;
    let listed = store.ahead(&service(SERVICE), &[created_at]).unwrap().pop().unwrap();
    let details = store.details(&service(SERVICE), &id(number)).unwrap().unwrap();
    assert_eq!(details.ahead, listed, "both ways to ask say the same");
    listed
}

fn conflicting_batch_names_the_other_one_and_the_address(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aabb"), writing(2, "aa"), writing(3, "aa")]);
    let second = ahead(&store, 2).unwrap();
    let address = Some(AddressPrefix::new("aabb"));
    assert_eq!(second.reason, WaitReason::Conflict { address });
    assert_eq!(second.head.map(|head| head.batch_id), Some(id(1)));
    let third = ahead(&store, 3).unwrap();
    assert_eq!(third.head.map(|head| head.batch_id), Some(id(2)));
    assert!(third.head_waits && !second.head_waits, "the second one waits itself");
}

fn dependent_names_the_transaction_and_its_batch(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa")]);
    store.add_all(&[depending(SERVICE, 2, "bb", &[transaction_of(1)])]);
    let second = ahead(&store, 2).unwrap();
    assert_eq!(second.reason, WaitReason::Dependency { transaction_id: transaction_of(1) });
    assert_eq!(second.head.map(|head| head.batch_id), Some(id(1)));
}

fn missing_transaction_is_named(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[depending(SERVICE, 2, "bb", &[transaction_of(1)])]);
    let second = ahead(&store, 2).unwrap();
    let WaitReason::MissingTransaction { transaction_id, .. } = second.reason else {
        panic!("{second:?}")
    };
    assert_eq!((transaction_id, second.head, second.count), (transaction_of(1), None, 0));
}

fn halted_batch_waits_for_an_operator(db: &Database) {
    for strategy in [Strategy::Parallel, Strategy::Serial] {
        let db = db.another();
        let store = db.open_halting(strategy);
        store.add_all(&[writing(1, "aa"), writing(2, "aa"), writing(3, "aa")]);
        store.end(&store.take_up_to(1)[0], LedgerStatus::Invalid);
        let second = ahead(&store, 2).unwrap();
        assert_eq!(second.reason.name(), "halt", "{strategy:?}");
        assert_eq!(second.head.map(|head| head.progress.state), Some(BatchState::Invalid));
    }
}

fn free_batch_without_a_lane_says_so(db: &Database) {
    let store = db.open_scheduled(Strategy::Parallel, 2);
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "cc")]);
    let third = ahead(&store, 3).unwrap();
    assert_eq!((third.reason, third.head, third.count), (WaitReason::Lane, None, 2));
}

fn serial_batch_waits_for_its_turn(db: &Database) {
    let store = db.open_scheduled(Strategy::Serial, 1);
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "aa")]);
    let third = ahead(&store, 3).unwrap();
    assert_eq!((third.reason, third.count), (WaitReason::Behind, 2));
    assert_eq!(third.head.map(|head| head.batch_id), Some(id(1)));
}

fn batch_in_a_lane_has_nothing_ahead(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "bb")]);
    assert_eq!((ahead(&store, 1), ahead(&store, 2)), (None, None));
}

fn position_counts_the_open_batches_before_it(db: &Database) {
    let store = db.open_parallel();
    let many = Ahead::MAX_COUNTED + 5;
    let batches: Vec<_> = (1..=many).map(|number| writing(number, "aa")).collect();
    for batches in batches.chunks(200) {
        store.add_all(batches);
    }
    let counted = |number| ahead(&store, number).map(|ahead| (ahead.count, ahead.more));
    assert_eq!(counted(5), Some((4, false)));
    assert_eq!(counted(many), Some((Ahead::MAX_COUNTED, true)));
}
