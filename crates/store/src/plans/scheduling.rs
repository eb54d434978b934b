//! The statements about services with several lanes.

mod dependencies;
mod one_lane;

use std::{collections::HashMap, sync::Arc};

use grid_batch_core::ServiceId;
use grid_batch_core::batches::{
    AddressPrefix, Change, Decision, DeclaredAccess, Event, LedgerStatus, NewBatch,
};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::events::Recorded;
use grid_batch_core::evidence::LedgerQuestionStore;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{
    AfterInvalid, RoundStore, Scheduling, SchedulingRules, ServiceShare, StrategyKind, TakenBatch,
};
use grid_batch_test_postgres::TestDatabase;

use super::{
    Recording, add, execute, new_batch, options_with_limits, recording, register_worker, texts,
};
use crate::{ClaimStore, DatabaseUrl, IntakeLimits, MonitorStore, Store, StoreOptions};

fn parallel() -> ServiceId {
    "plan::parallel".parse().unwrap()
}

fn pipeline() -> ServiceId {
    "plan::pipeline".parse().unwrap()
}

fn options() -> StoreOptions {
    let of = |strategy| Scheduling { strategy, after_invalid: AfterInvalid::Continue, lanes: 50 };
    let rules = SchedulingRules {
        default: of(StrategyKind::Parallel),
        services: HashMap::from([
            (pipeline(), of(StrategyKind::Pipeline)),
            (
                dependencies::halting(),
                Scheduling { after_invalid: AfterInvalid::Halt, ..of(StrategyKind::Parallel) },
            ),
            (
                dependencies::halting_in_order(),
                Scheduling { after_invalid: AfterInvalid::Halt, ..of(StrategyKind::Pipeline) },
            ),
        ]),
        uses_declared_access: true,
    };
    StoreOptions { scheduling: Arc::new(rules), ..StoreOptions::default() }
}

/// A batch that writes an address.
fn writing(service_id: ServiceId, number: u64, address: &str) -> NewBatch {
    let access = DeclaredAccess::new([], [AddressPrefix::new(address)], []);
    NewBatch { declared_access: Some(access), ..new_batch(service_id, number) }
}

fn address(number: u64) -> String {
    format!("{:0<70}", format!("{number:08x}"))
}

/// Adds 4,000 open batches over 2,000 addresses, and some that cover many of them.
fn load_scheduled(claims: &ClaimStore) {
    let store = claims.store();
    let batches: Vec<NewBatch> =
        (0..4_000).map(|n| writing(parallel(), n, &address(n % 2_000))).collect();
    add(store, &[writing(parallel(), 7_000, "ffffff")]);
    for group in batches.chunks(1_000) {
        add(store, group);
    }
    let others: Vec<NewBatch> = (0..500)
        .map(|n| writing(format!("plan::{n:03}").parse().unwrap(), 8_000 + n, &address(n)))
        .collect();
    add(store, &others);
    claims.take(1_000).unwrap();
    dependencies::load(claims);
}

fn take(claims: &ClaimStore, service_id: ServiceId, batches: usize) -> Vec<TakenBatch> {
    let share = ServiceShare { service_id, batches };
    RoundStore::take_round(claims, &[share], &mut |_| true).unwrap().batches
}

fn end(store: &Store, taken: &[TakenBatch], outcome: Outcome) {
    let ended = |taken: &TakenBatch| {
        let event = Event::Outcome { attempt: taken.attempt, outcome };
        Change::new(taken.service_id.clone(), taken.batch_id, event)
    };
    store.record(&taken.iter().map(ended).collect::<Vec<_>>()).unwrap();
}

/// Takes batches from intake to their end.
fn process_scheduled(claims: &ClaimStore) {
    let store = claims.store();
    let new: Vec<NewBatch> =
        (0..20).map(|n| writing(parallel(), 10_000 + n, &address(n))).collect();
    add(store, &new);
    add(store, &[writing(parallel(), 10_100, "00"), new_batch(parallel(), 10_101)]);
    let monitor = MonitorStore::new(claims.clone(), |_: Recorded<'_>| ());
    assert_eq!(monitor.next_batches(&[parallel()]).unwrap().len(), 149);
    let taken = take(claims, parallel(), 40);
    assert_eq!(taken.len(), 40);
    end(store, &taken, Outcome::Committed);
    assert_eq!(take(claims, parallel(), 50).len(), 50);
    let waiting = store.open_batches(&parallel(), 100).unwrap().pop().unwrap();
    store.decide(&parallel(), &waiting.batch_id, 0, Decision::Invalid).unwrap();
    process_pipeline(claims);
    process_lists(claims);
    free_many(claims);
    use_up_lengths(claims);
    dependencies::process(claims);
}

/// Sends conflicting batches one after the other.
fn process_pipeline(claims: &ClaimStore) {
    let store = claims.store();
    let all: Vec<NewBatch> =
        (0..60).map(|n| writing(pipeline(), 11_000 + n, &address(n % 2))).collect();
    add(store, &all);
    claims.take_services(&[pipeline()]).unwrap();
    let first = take(claims, pipeline(), 9);
    end(store, &first, Outcome::Accepted);
    assert_eq!(take(claims, pipeline(), 9).len(), 1);
    let committed = |taken: &TakenBatch| {
        let event = Event::status(LedgerStatus::Committed);
        Change::new(taken.service_id.clone(), taken.batch_id, event)
    };
    store.record(&first.iter().map(committed).collect::<Vec<_>>()).unwrap();
}

/// Sends conflicting batches in a list, of which a later one is committed first.
fn process_lists(claims: &ClaimStore) {
    let store = claims.store();
    let service: ServiceId = "plan::lists".parse().unwrap();
    let all: Vec<NewBatch> =
        (0..60).map(|n| writing(service.clone(), 13_000 + n, &address(0))).collect();
    store.lists().set_open(true);
    add(store, &all);
    claims.take_services(std::slice::from_ref(&service)).unwrap();
    let list = take(claims, service, 9);
    assert!(list.len() == 9 && list[1..].iter().all(|taken| taken.joins_list));
    end(store, &list[..8], Outcome::Accepted);
    end(store, &list[8..], Outcome::Committed);
    store.lists().set_open(false);
}

/// Ends a batch for which more batches wait than one commit evaluates.
fn free_many(claims: &ClaimStore) {
    let store = claims.store();
    let service: ServiceId = "plan::many".parse().unwrap();
    add(store, &[new_batch(service.clone(), 12_000)]);
    let all: Vec<NewBatch> =
        (1..900).map(|n| writing(service.clone(), 12_000 + n, &address(n))).collect();
    add(store, &all);
    claims.take_services(std::slice::from_ref(&service)).unwrap();
    end(store, &take(claims, service, 1), Outcome::Committed);
    store.free_dependents(10_000).unwrap();
}

/// Ends batches of a service that declare addresses of many lengths.
fn use_up_lengths(claims: &ClaimStore) {
    let store = claims.store();
    let service: ServiceId = "plan::lengths".parse().unwrap();
    let all: Vec<NewBatch> = (1..=10)
        .map(|n| writing(service.clone(), 13_000 + n, &"ab".repeat(usize::try_from(n).unwrap())))
        .collect();
    add(store, &all);
    claims.take_services(std::slice::from_ref(&service)).unwrap();
    end(store, &take(claims, service, 1), Outcome::Committed);
}

/// Takes services with several lanes from an instance that has stopped.
fn take_over(store: &Store) {
    execute(store, "update instances set expiry_1 = 1, expiry_2 = 1");
    let other = register_worker(store);
    assert!(other.take_services(&[parallel(), pipeline()]).unwrap().claims.len() == 2);
}

/// Adds 5,000 services without open batches.
fn load_idle_services(store: &Store) {
    let ids = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)
               select 'idle::' || i";
    execute(
        store,
        &format!(
            "insert into services {ids}, 0, 0 from n;
             insert into lanes (service_id, lane) {ids}, 0 from n;
             insert into address_lengths {ids}, 6, 1 from n;
             insert into service_id_claims {ids}, null, 1, null, null from n"
        ),
    );
}

/// A store with limits at which the queues are full.
fn with_limits(url: &DatabaseUrl) -> Store {
    let intake_limits =
        IntakeLimits { open_batches_of_client: u64::MAX, ..options_with_limits().intake_limits };
    Store::open(url, StoreOptions { intake_limits, ..options() }).unwrap()
}

fn fill(url: &DatabaseUrl) -> ClaimStore {
    let store = Store::open(url, options()).unwrap();
    let worker = register_worker(&store);
    load_scheduled(&worker);
    load_idle_services(worker.store());
    one_lane::load(url);
    worker
}

fn record(worker: ClaimStore, url: &DatabaseUrl) -> Recording {
    let store = worker.store().clone();
    let stores = one_lane::Stores::open(url);
    let limited = with_limits(url);
    recording(|| {
        process_scheduled(&worker);
        dependencies::process_full_queue(&limited);
        one_lane::process(&worker, &stores);
        // Dropping it releases the lock of an SQLite file.
        drop(worker);
        take_over(&store);
    })
}

pub(super) fn record_on_postgres() -> Recording {
    let database = TestDatabase::create();
    let url = database.url().parse().unwrap();
    let worker = fill(&url);
    execute(worker.store(), "vacuum analyze");
    let recorded = record(worker, &url);
    insta::assert_snapshot!("postgres", texts(&recorded));
    recorded
}

pub(super) fn record_on_sqlite() -> Recording {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/plans.db", dir.path().display()).parse().unwrap();
    let recorded = record(fill(&url), &url);
    insta::assert_snapshot!("sqlite", texts(&recorded));
    recorded
}
