//! Limits of intake: open batches of a service, and services that are new.

use grid_batch_core::batches::{
    AddOutcome, BatchConflict, ClientId, Decision, IntakeStore, NewBatch, SignerId,
};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::operators::OperatorTarget;
use grid_batch_core::queries::{BatchQueryStore, FullQueue, QueueCounts};
use grid_batch_core::queue::StrategyKind;
use grid_batch_store::{IntakeLimits, Store, StoreOptions};

use crate::pauses::pause;
use crate::scheduling::fixture::{SERVICE, ScheduledExt, depending, transaction_of, writing};

use crate::fixture::{Database, StoreExt, TestStore, batch, id, on_both, service};

on_both! {
    queue_of_a_service_is_limited,
    list_that_exceeds_a_queue_is_refused_as_a_whole,
    ended_batches_free_their_places,
    new_services_of_a_signer_are_limited,
    new_services_of_all_signers_are_limited,
    signers_leave_new_services_to_others,
    refused_list_opens_no_service,
    service_is_not_new_after_its_first_end,
    decided_batch_behind_another_ends_newness,
    limits_hold_for_another_store_of_the_database,
    refused_services_leave_nothing_behind,
    unsigned_batches_open_services_without_a_limit,
    list_is_counted_after_an_earlier_one_was_refused,
    queue_of_a_client_is_limited,
    ended_batches_of_a_client_free_their_places,
    refused_list_of_a_client_is_not_counted,
    removed_batches_of_a_client_are_forgotten,
    batch_that_others_wait_for_enters_a_full_queue,
    dependents_enter_a_full_queue_only_if_waited_for,
    missing_transactions_of_a_signer_are_limited,
    batches_that_miss_transactions_are_limited,
    batch_waited_for_enters_beyond_the_limit_of_its_signer,
    batch_waited_for_enters_the_full_queue_of_a_client,
    arrived_transactions_are_not_counted,
    full_queue_is_counted_by_what_fills_it,
    open_batches_of_all_services_are_counted,
}

fn open_with(db: &Database, limits: IntakeLimits) -> TestStore {
    db.open_with(StoreOptions { intake_limits: limits, ..db.options() })
}

fn queue_limit(open_batches: u64) -> IntakeLimits {
    IntakeLimits { open_batches, ..IntakeLimits::default() }
}

fn signer_limit(new_services_per_signer: u64) -> IntakeLimits {
    IntakeLimits { new_services_per_signer, ..IntakeLimits::default() }
}

fn client_limit(open_batches_of_client: u64) -> IntakeLimits {
    IntakeLimits { open_batches_of_client, ..IntakeLimits::default() }
}

fn of_client(client: u8, batch: NewBatch) -> NewBatch {
    NewBatch { client: Some(ClientId::Key(signer(client))), ..batch }
}

fn open_parallel_with(db: &Database, limits: IntakeLimits) -> TestStore {
    let options = db.scheduled(StrategyKind::Parallel, 10);
    db.open_with(StoreOptions { intake_limits: limits, ..options })
}

/// A batch of a signer that depends on the transactions of others.
fn dependent(number: u64, by: u8, on: &[u64]) -> NewBatch {
    let on: Vec<_> = on.iter().map(|number| transaction_of(*number)).collect();
    let batch = depending(SERVICE, number, &format!("{number:08x}"), &on);
    NewBatch { signer: Some(signer(by)), ..batch }
}

fn plain(number: u64) -> NewBatch {
    writing(number, &format!("{number:08x}"))
}

fn signer(number: u8) -> SignerId {
    SignerId::from_bytes([number; SignerId::BYTES])
}

fn signed(service_name: &str, number: u64, by: u8) -> NewBatch {
    NewBatch { signer: Some(signer(by)), ..batch(service_name, number) }
}

/// Adds each batch as a separate list, in one commit, and returns which were stored.
fn add_each(store: &Store, batches: &[NewBatch]) -> Vec<bool> {
    let lists: Vec<&[NewBatch]> = batches.iter().map(std::slice::from_ref).collect();
    store.add(&lists).unwrap().iter().map(Result::is_ok).collect()
}

fn refusal(store: &Store, batches: &[NewBatch]) -> BatchConflict {
    store.add(&[batches]).unwrap().remove(0).unwrap_err()
}

fn queue_of_a_service_is_limited(db: &Database) {
    let store = open_with(db, queue_limit(2));
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let expected = BatchConflict::QueueFull { service_id: service("a::b"), open: 2, limit: 2 };
    assert_eq!(refusal(&store, &[batch("a::b", 3)]), expected);
    let again = store.add(&[&[batch("a::b", 1)]]).unwrap();
    assert_eq!(again, [Ok(vec![AddOutcome::AlreadyStored])]);
    store.add_all(&[batch("a::c", 3)]);
}

fn list_that_exceeds_a_queue_is_refused_as_a_whole(db: &Database) {
    let store = open_with(db, queue_limit(3));
    let lists = [
        vec![batch("a::b", 1), batch("a::b", 2)],
        vec![batch("a::b", 3), batch("a::b", 4)],
        vec![batch("a::b", 5)],
        vec![batch("a::b", 6)],
    ];
    let lists: Vec<&[NewBatch]> = lists.iter().map(Vec::as_slice).collect();
    let stored: Vec<bool> = store.add(&lists).unwrap().iter().map(Result::is_ok).collect();
    assert_eq!(stored, [true, false, true, false]);
    assert!(store.find(&id(3)).unwrap().is_empty());
}

fn ended_batches_free_their_places(db: &Database) {
    let store = open_with(db, queue_limit(2));
    for number in 1..=5 {
        store.add_all(&[batch("a::b", 2 * number)]);
        let stored = add_each(&store, &[batch("a::b", 2 * number + 1), batch("a::b", 99)]);
        assert_eq!(stored, [true, false]);
        store.commit_next("a::b");
        store.commit_next("a::b");
    }
    store.remove_in_steps(db.later(1), 100);
    let stored = add_each(&store, &[20, 21, 22].map(|number| batch("a::b", number)));
    assert_eq!(stored, [true, true, false]);
}

fn new_services_of_a_signer_are_limited(db: &Database) {
    let store = open_with(db, signer_limit(2));
    let names = ["a::b", "a::c", "a::d"];
    let stored = add_each(&store, &names.map(|name| signed(name, 1, 7)));
    assert_eq!(stored, [true, true, false]);
    let expected = BatchConflict::TooManyServicesOfSigner {
        service_id: service("a::e"),
        signer: Box::new(signer(7)),
        limit: 2,
    };
    assert_eq!(refusal(&store, &[signed("a::e", 1, 7)]), expected);
    assert_eq!(add_each(&store, &[signed("a::b", 2, 7), signed("a::d", 1, 8)]), [true, true]);
    store.add_all(&[signed("a::d", 2, 7)]);
}

fn new_services_of_all_signers_are_limited(db: &Database) {
    let store = open_with(db, IntakeLimits { new_services: 2, ..IntakeLimits::default() });
    let batches = [signed("a::b", 1, 7), signed("a::c", 1, 8), signed("a::d", 1, 9)];
    assert_eq!(add_each(&store, &batches), [true, true, false]);
    let expected = BatchConflict::TooManyNewServices { service_id: service("a::e"), limit: 2 };
    assert_eq!(refusal(&store, &[signed("a::e", 1, 9)]), expected);
    store.add_all(&[signed("a::b", 2, 9)]);
}

fn signers_leave_new_services_to_others(db: &Database) {
    let limits =
        IntakeLimits { new_services_per_signer: 10, new_services: 100, ..IntakeLimits::default() };
    let store = open_with(db, limits);
    for signer in 1..=10 {
        let services = (0..10).map(|number| format!("a::{signer}-{number}"));
        let batches: Vec<NewBatch> = services.map(|name| signed(&name, 1, signer)).collect();
        add_each(&store, &batches);
    }
    let others = ["b::1", "b::2", "b::3", "b::4", "b::5"].map(|name| signed(name, 1, 11));
    assert_eq!(add_each(&store, &others), [true, true, true, true, false]);
}

fn refused_list_opens_no_service(db: &Database) {
    let store = open_with(db, signer_limit(2));
    store.add_all(&[signed("a::b", 1, 7)]);
    let two = [signed("a::c", 1, 7), signed("a::d", 1, 7)];
    refusal(&store, &two);
    assert_eq!(add_each(&store, &two), [true, false]);
}

fn service_is_not_new_after_its_first_end(db: &Database) {
    let store = open_with(db, signer_limit(1));
    store.add_all(&[signed("a::b", 1, 7), signed("a::b", 2, 7)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Busy);
    refusal(&store, &[signed("a::c", 1, 7)]);
    let attempt = taken.attempt;
    store.decide(&taken.service_id, &taken.batch_id, attempt, Decision::Invalid).unwrap();
    store.add_all(&[signed("a::c", 1, 7)]);
    refusal(&store, &[signed("a::d", 1, 7)]);
    store.commit_next("a::c");
    store.add_all(&[signed("a::d", 1, 7)]);
}

fn decided_batch_behind_another_ends_newness(db: &Database) {
    let store = open_with(db, signer_limit(1));
    store.add_all(&[signed("a::b", 1, 7), signed("a::b", 2, 7)]);
    refusal(&store, &[signed("a::c", 1, 7)]);
    store.decide(&service("a::b"), &id(2), 0, Decision::Invalid).unwrap();
    store.add_all(&[signed("a::c", 1, 7)]);
}

fn limits_hold_for_another_store_of_the_database(db: &Database) {
    open_with(db, signer_limit(2)).add_all(&[signed("a::b", 1, 7)]);
    let other = open_with(db, signer_limit(1));
    refusal(&other, &[signed("a::c", 1, 7)]);
}

fn refused_services_leave_nothing_behind(db: &Database) {
    let store = open_with(db, signer_limit(1));
    store.add_all(&[signed("a::b", 1, 7)]);
    let made_up: Vec<NewBatch> =
        (0..50).map(|number| signed(&format!("made-up::{number}"), 1, 7)).collect();
    assert_eq!(add_each(&store, &made_up), [false; 50]);
    for table in ["services", "service_id_claims", "lanes", "new_services", "batches"] {
        assert_eq!(db.number(&format!("select count(*) as number from {table}")), 1, "{table}");
    }
}

fn unsigned_batches_open_services_without_a_limit(db: &Database) {
    let limits = IntakeLimits { new_services: 1, ..signer_limit(1) };
    let store = open_with(db, limits);
    let batches = ["a::b", "a::c", "a::d"].map(|name| batch(name, 1));
    assert_eq!(add_each(&store, &batches), [true; 3]);
}

fn list_is_counted_after_an_earlier_one_was_refused(db: &Database) {
    let store = open_with(db, IntakeLimits { open_batches: 2, ..signer_limit(1) });
    let lists = [
        vec![signed("a::b", 1, 7), signed("a::b", 2, 8), signed("a::b", 3, 8)],
        vec![signed("a::c", 1, 7), signed("a::c", 2, 8)],
        vec![signed("a::d", 1, 7)],
    ];
    let lists: Vec<&[NewBatch]> = lists.iter().map(Vec::as_slice).collect();
    let stored: Vec<bool> = store.add(&lists).unwrap().iter().map(Result::is_ok).collect();
    assert_eq!(stored, [false, true, false]);
}

fn queue_of_a_client_is_limited(db: &Database) {
    let store = open_with(db, client_limit(2));
    store.add_all(&[of_client(1, batch("a::b", 1)), of_client(1, batch("a::c", 2))]);
    let refused = BatchConflict::QueueOfClientFull { open: 2, limit: 2 };
    assert_eq!(refusal(&store, &[of_client(1, batch("a::d", 3))]), refused);
    let again = store.add(&[&[of_client(1, batch("a::b", 1))]]).unwrap();
    assert_eq!(again, [Ok(vec![AddOutcome::AlreadyStored])]);
    store.add_all(&[of_client(2, batch("a::b", 4)), batch("a::b", 5)]);
    // Another instance counts what this one has added.
    let other = open_with(db, client_limit(2));
    assert_eq!(refusal(&other, &[of_client(1, batch("a::d", 3))]), refused);
}

fn ended_batches_of_a_client_free_their_places(db: &Database) {
    let store = open_with(db, client_limit(2));
    store.add_all(&[of_client(1, batch("a::b", 1)), of_client(1, batch("a::b", 2))]);
    store.commit_next("a::b");
    db.later(1);
    assert_eq!(
        add_each(&store, &[3, 4].map(|number| of_client(1, batch("a::b", number)))),
        [true, false]
    );
}

fn refused_list_of_a_client_is_not_counted(db: &Database) {
    let store = open_with(db, client_limit(2));
    let list = [1, 2, 3].map(|number| of_client(1, batch("a::b", number)));
    let refused = BatchConflict::QueueOfClientFull { open: 2, limit: 2 };
    assert_eq!(refusal(&store, &list), refused);
    store.add_all(&list[..2]);
    assert_eq!(refusal(&store, &list[2..]), refused);
}

fn removed_batches_of_a_client_are_forgotten(db: &Database) {
    let store = open_with(db, client_limit(2));
    store.add_all(&[of_client(1, batch("a::b", 1)), of_client(1, batch("a::b", 2))]);
    store.commit_next("a::b");
    assert_eq!(store.remove_in_steps(db.later(1), 100), 1);
    assert_eq!(db.number("select count(*) as number from client_batches"), 1);
}

fn batch_that_others_wait_for_enters_a_full_queue(db: &Database) {
    let store = open_parallel_with(db, queue_limit(3));
    store.add_all(&[1_001, 1_002, 1_003].map(|number| dependent(number, 7, &[1])));
    assert!(matches!(refusal(&store, &[plain(2)]), BatchConflict::QueueFull { open: 3, .. }));
    store.add_all(&[plain(1)]);
    assert!(matches!(refusal(&store, &[plain(2)]), BatchConflict::QueueFull { open: 4, .. }));
    store.free_all();
    assert_eq!(store.commit_all_of(SERVICE), [1]);
    store.free_all();
    assert_eq!(store.commit_all_of(SERVICE), [1_001, 1_002, 1_003]);
    store.add_all(&[plain(2)]);
}

/// Clients could invent any number of batches that wait for each other.
fn dependents_enter_a_full_queue_only_if_waited_for(db: &Database) {
    let store = open_parallel_with(db, queue_limit(3));
    store.add_all(&[dependent(1_000, 7, &[1_001]), dependent(5, 7, &[6]), dependent(7, 7, &[8])]);
    let chain = (1_001..1_010).map(|number| dependent(number, 7, &[number + 1]));
    let stored = add_each(&store, &chain.collect::<Vec<_>>());
    assert_eq!(stored.iter().filter(|stored| **stored).count(), 1, "one is waited for: {stored:?}");
    for number in 1_002..1_010 {
        let stored = add_each(&store, &[dependent(number, 7, &[number + 1])]);
        assert_eq!(stored, [number < 1_004], "{number}");
    }
}

fn missing_limit(missing_transactions_of_signer: u64) -> IntakeLimits {
    IntakeLimits { missing_transactions_of_signer, ..IntakeLimits::default() }
}

fn missing_transactions_of_a_signer_are_limited(db: &Database) {
    let store = open_parallel_with(db, missing_limit(3));
    store.add_all(&[dependent(1_001, 7, &[1, 2]), dependent(1_002, 7, &[1])]);
    let expected =
        BatchConflict::TooManyMissing { signer: Box::new(signer(7)), missing: 3, limit: 3 };
    assert_eq!(refusal(&store, &[dependent(1_003, 7, &[3])]), expected);
    // Batches that miss nothing, and other signers, are not affected.
    let complete = NewBatch { signer: Some(signer(7)), ..plain(9) };
    store.add_all(&[dependent(1_004, 8, &[3, 4, 5, 6]), complete]);
    // Another instance counts them as well.
    let other = open_parallel_with(db, missing_limit(3));
    assert_eq!(refusal(&other, &[dependent(1_003, 7, &[3])]), expected);
    store.add_all(&[plain(1)]);
    store.free_all();
    db.later(1);
    store.add_all(&[dependent(1_003, 7, &[3])]);
}

/// Many signers together leave room for batches that can be sent.
fn batches_that_miss_transactions_are_limited(db: &Database) {
    let limits = IntakeLimits { open_batches: 8, incomplete_batches: 4, ..IntakeLimits::default() };
    let store = open_parallel_with(db, limits);
    let many_signers =
        (0..6).map(|n| dependent(1_001 + u64::from(n), 10 + n, &[1])).collect::<Vec<_>>();
    let stored = add_each(&store, &many_signers);
    assert_eq!(stored, [true, true, true, true, false, false]);
    let expected = BatchConflict::TooManyIncomplete {
        service_id: SERVICE.parse().unwrap(),
        incomplete: 4,
        limit: 4,
    };
    // The limit also applies to a batch that others wait for, to one in a list with others, and at another instance.
    assert_eq!(refusal(&store, &[dependent(1, 30, &[2])]), expected);
    assert_eq!(refusal(&store, &[plain(9), dependent(1_020, 30, &[3])]), expected);
    let other = open_parallel_with(db, limits);
    assert_eq!(refusal(&other, &many_signers[4..]), expected);
    // Batches that miss nothing are stored and committed.
    store.add_all(&[plain(3), plain(4)]);
    assert_eq!(store.commit_all_of(SERVICE), [3, 4]);
    // The missing transactions arrive, and there is room again.
    store.add_all(&[plain(1)]);
    store.free_all();
    db.later(1);
    store.add_all(&[dependent(1_020, 30, &[5])]);
}

fn batch_waited_for_enters_beyond_the_limit_of_its_signer(db: &Database) {
    let store = open_parallel_with(db, missing_limit(2));
    store.add_all(&[dependent(1_001, 7, &[1]), dependent(1_002, 7, &[1])]);
    store.add_all(&[dependent(1, 7, &[2])]);
    refusal(&store, &[dependent(1_003, 7, &[1])]);
    store.add_all(&[plain(2)]);
    store.free_all();
    assert_eq!(store.commit_all_of(SERVICE), [2]);
}

fn batch_waited_for_enters_the_full_queue_of_a_client(db: &Database) {
    let store = open_parallel_with(db, client_limit(1));
    store.add_all(&[of_client(1, dependent(1_001, 7, &[1]))]);
    refusal(&store, &[of_client(1, plain(2))]);
    store.add_all(&[of_client(1, plain(1))]);
}

fn arrived_transactions_are_not_counted(db: &Database) {
    let store = open_parallel_with(db, missing_limit(1));
    store.add_all(&[plain(1)]);
    let list = [dependent(1_001, 7, &[1]), plain(2), dependent(1_002, 7, &[2])];
    store.add_all(&list);
    store.add_all(&[dependent(1_003, 7, &[3])]);
    refusal(&store, &[dependent(1_004, 7, &[4])]);
    // A refused list is not counted.
    refusal(&store, &[plain(5), dependent(1_005, 8, &[6]), dependent(1_006, 8, &[7])]);
    store.add_all(&[dependent(1_005, 8, &[6])]);
}

fn full_queue_is_counted_by_what_fills_it(db: &Database) {
    let store = open_parallel_with(db, queue_limit(5));
    assert_eq!(store.queue_counts().unwrap(), QueueCounts::default());
    store.add_all(&[
        dependent(1_001, 7, &[1]),
        dependent(1_002, 7, &[2]),
        dependent(1_003, 8, &[1]),
        plain(5),
    ]);
    let counts = store.queue_counts().unwrap();
    assert_eq!((counts.open, counts.incomplete, counts.full, counts.fullest), (4, 3, 0, None));
    store.add_all(&[plain(6)]);
    let service = service(SERVICE);
    pause(&store, OperatorTarget::Service(service.clone()));
    store.hold_batch(&service, &id(6), "a reason").unwrap();
    let full = FullQueue {
        service_id: service,
        open: 5,
        limit: 5,
        incomplete: 3,
        signers: 2,
        most_of_signer: 2,
        held: 1,
        delayed: 0,
        paused: true,
        halted: false,
    };
    assert_eq!(store.queue_counts().unwrap().fullest, Some(full));
}

fn open_batches_of_all_services_are_counted(db: &Database) {
    let store = open_with(db, queue_limit(2));
    for name in ["a::a", "b::b", "c::c", "d::d"] {
        store.add_all(&[batch(name, 1), batch(name, 2)]);
    }
    store.commit_next("c::c");
    store.commit_next("d::d");
    store.commit_next("d::d");
    let counts = store.queue_counts().unwrap();
    assert_eq!((counts.open, counts.full), (5, 2));
    let fullest = counts.fullest.unwrap();
    assert_eq!((fullest.service_id, fullest.open), (service("b::b"), 2));
}
