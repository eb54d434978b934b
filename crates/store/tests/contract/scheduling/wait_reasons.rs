//! Why a batch waits, in a service with several batches under way.

use std::collections::BTreeSet;

use grid_batch_core::batches::{AddressPrefix, BatchState, Change, Event, LedgerStatus};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::operators::OperatorTarget;
use grid_batch_core::queries::{BatchQueryStore, WaitReason};
use grid_batch_core::queue::{Ahead, StrategyKind};

use super::fixture::{SERVICE, ScheduledExt, depending, transaction_of, writing};
use crate::{
    fixture::{Database, StoreExt, TestStore, batch, happened, id, on_both, service},
    pauses::pause,
};

on_both! {
    conflicting_batch_names_the_other_one_and_the_address,
    dependent_names_the_transaction_and_its_batch,
    missing_transaction_is_named,
    halted_batch_waits_for_an_operator,
    free_batch_without_a_lane_says_so,
    serial_batch_waits_for_its_turn,
    batch_in_a_lane_has_nothing_ahead,
    position_counts_the_open_batches_before_it,
    each_stored_reason_is_found,
    services_and_batches_have_the_same_reason,
}

fn ahead(store: &TestStore, number: u64) -> Option<Ahead> {
    let created_at = store.one(SERVICE, number).created_at;
    let listed = store.ahead(&service(SERVICE), &[created_at]).unwrap().pop().unwrap();
    let details = store.details(&service(SERVICE), &id(number)).unwrap().unwrap();
    assert_eq!(details.ahead, listed, "both queries agree");
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
    for strategy in [StrategyKind::Parallel, StrategyKind::Serial] {
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
    let store = db.open_scheduled(StrategyKind::Parallel, 2);
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "cc")]);
    let third = ahead(&store, 3).unwrap();
    assert_eq!((third.reason, third.head, third.count), (WaitReason::Lane, None, 2));
}

fn serial_batch_waits_for_its_turn(db: &Database) {
    let store = db.open_scheduled(StrategyKind::Serial, 1);
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

/// Why a batch waits, according to its details and to the list of what is ahead.
fn reason(store: &TestStore, service_name: &str, number: u64) -> &'static str {
    let details = store.details(&service(service_name), &id(number)).unwrap().unwrap();
    details.wait().unwrap().reason.name()
}

/// Services whose batches each wait for a different reason, by the name of the reason.
const STATES: [&str; 7] =
    ["delayed", "evidence", "held", "late_arrival", "parked", "status", "submitter"];

fn services_in_all_states(store: &TestStore) {
    for (number, name) in (1..).zip(STATES) {
        store.add_all(&[batch(name, number)]);
        let taken = store.take_one(name);
        let ended_as = |outcome| {
            let event = Event::Outcome { attempt: taken.attempt, outcome };
            let error = Some("why".to_owned());
            store.record_one(Change { error, ..happened(&taken, event) });
        };
        match name {
            "delayed" => ended_as(Outcome::Refused),
            "parked" => ended_as(Outcome::Parked),
            "evidence" => ended_as(Outcome::Ambiguous),
            "status" => ended_as(Outcome::Accepted),
            "held" => {
                ended_as(Outcome::Ambiguous);
                store.hold(&taken, "look first");
            }
            "late_arrival" => {
                ended_as(Outcome::Ambiguous);
                store.evidence(&taken, Evidence::Absent);
                let again = store.take_one(name);
                store.outcome(&again, Outcome::Accepted);
                store.status(&again, LedgerStatus::Invalid);
            }
            _ => {}
        }
    }
}

/// Other reasons are known only to a process, or apply to a whole service.
fn each_stored_reason_is_found(db: &Database) {
    let (mut found, mut counted) = (BTreeSet::new(), BTreeSet::new());
    let mut count =
        |store: &TestStore| counted.extend(store.open_states().unwrap().waits.into_keys());
    let states = db.another();
    let store = states.open();
    services_in_all_states(&store);
    for (number, name) in (1..).zip(STATES) {
        assert_eq!(reason(&store, name, number), name);
        found.insert(name);
    }
    store.add_all(&[batch("turns", 11), batch("turns", 12), batch("paused", 13)]);
    pause(&store, OperatorTarget::Service(service("paused")));
    for (name, number) in [("turns", 11), ("turns", 12), ("paused", 13)] {
        found.insert(reason(&store, name, number));
    }
    count(&store);

    let parallel = db.another();
    let store = parallel.open_scheduled(StrategyKind::Parallel, 2);
    store.add_all(&[writing(1, "aa"), writing(2, "aa"), writing(3, "bb"), writing(4, "cc")]);
    store.add_all(&[depending(SERVICE, 5, "dd", &[transaction_of(1)])]);
    store.add_all(&[depending(SERVICE, 6, "ee", &[transaction_of(9)])]);
    found.extend([2, 4, 5, 6].map(|number| reason(&store, SERVICE, number)));
    count(&store);

    let halting = db.another();
    let store = halting.open_halting(StrategyKind::Serial);
    store.add_all(&[writing(1, "aa"), writing(2, "aa")]);
    store.end(&store.take_up_to(1)[0], LedgerStatus::Invalid);
    found.insert(reason(&store, SERVICE, 2));
    count(&store);

    let of_turns = [
        "behind",
        "conflict",
        "dependency",
        "halt",
        "lane",
        "missing_transaction",
        "paused",
        "submission",
    ];
    assert_eq!(found, of_turns.into_iter().chain(STATES).collect());
    counted.insert("behind");
    assert_eq!(counted, found, "all are counted but turns in a service with one lane");
}

/// Lists and counts of services, which use SQL, agree with the reasons why their batches wait.
fn services_and_batches_have_the_same_reason(db: &Database) {
    let store = db.open();
    services_in_all_states(&store);
    for service in BatchQueryStore::services(&*store, false, None, 100).unwrap() {
        let name = service.service_id.as_str();
        assert_eq!(service.parked.is_some(), name == "parked", "{name}");
        assert_eq!(service.failing.is_some(), name == "delayed" || name == "evidence", "{name}");
        assert_eq!(service.held > 0, name == "held", "{name}");
        assert_eq!(service.in_doubt > 0, name == "evidence" || name == "held", "{name}");
    }
    let counts = store.service_counts().unwrap();
    assert_eq!((counts.held, counts.failing, counts.halted, counts.paused), (1, 2, 0, 0));
}
