//! Lists of batches that programs leave in the database.

use std::{
    sync::mpsc::{Receiver, channel},
    thread::sleep,
    time::{Duration, Instant},
};

use grid_batch_core::ServiceId;
use grid_batch_core::batches::{FormatError, NewBatch};
use grid_batch_core::events::Recorded;
use grid_batch_core::queue::StrategyKind;
use grid_batch_store::{IntakeLimits, IntakeLists, Store, StoreOptions};
use grid_batch_support::{Job, Jobs};

use crate::fixture::{Database, StoreExt, TestStore, batch, on_both, service};
use crate::scheduling::fixture::{SERVICE, ScheduledExt, depending, transaction_of};

on_both! {
    lists_of_a_service_are_added_in_order,
    refused_list_stays_and_stops_no_other,
    list_that_no_queue_can_take_is_refused,
    list_waits_with_those_after_it_while_the_queue_is_full,
    list_that_misses_transactions_lets_later_ones_pass,
    two_instances_add_each_list_once,
}

const LEFT: &str = "select count(*) as number from intake_lists";

/// Leaves a list of batches with these numbers.
fn leave(db: &Database, service: &str, numbers: &str) {
    let sql =
        format!("insert into intake_lists (service_id, list) values ('{service}', '{numbers}')");
    let on_sqlite = sql.replace(&format!("'{numbers}'"), &format!("cast('{numbers}' as blob)"));
    db.execute(if db.is_postgres() { &sql } else { &on_sqlite }).unwrap();
}

/// The batches of a list with these numbers.
fn read(service: &ServiceId, list: &[u8]) -> Result<Vec<NewBatch>, FormatError> {
    let text = String::from_utf8_lossy(list);
    let numbers = text.split(' ').map(str::parse::<u64>);
    let batches =
        numbers.map(|number| Ok(numbered(service.as_str(), number.map_err(|_| text.to_string())?)));
    batches.collect::<Result<_, String>>().map_err(FormatError::Undecodable)
}

/// The batch with this number. One above 1,000 depends on that with 1,000 less.
fn numbered(service: &str, number: u64) -> NewBatch {
    let needed = number.checked_sub(1_000).filter(|needed| *needed > 0).map(transaction_of);
    depending(service, number, &format!("{number:08x}"), needed.as_slice())
}

/// Starts the job, which sends the services with new batches.
fn start(store: &Store, jobs: &Jobs) -> (Job, Receiver<ServiceId>) {
    let (send, added) = channel();
    let stream = move |entry: Recorded<'_>| {
        let Recorded::Stored([service]) = entry else { panic!("{entry:?}") };
        let _ = send.send(service.clone());
    };
    (IntakeLists::start(store, read, stream, jobs), added)
}

/// Waits until a query for a number returns this one.
fn wait_for(db: &Database, sql: &str, number: i64) {
    let started = Instant::now();
    while db.number(sql) != number {
        assert!(started.elapsed() < Duration::from_secs(60), "{sql} is not {number}");
        sleep(Duration::from_millis(5));
    }
}

fn assert_order(store: &TestStore, service: &str, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        assert_eq!(store.commit_next(service), batch(service, number).batch_id);
    }
}

fn lists_of_a_service_are_added_in_order(db: &Database) {
    let store = db.open();
    leave(db, "a::b", "3 1");
    leave(db, "a::b", "2");
    leave(db, "c::d", "4");
    let jobs = Jobs::start().unwrap();
    let (_job, added) = start(&store, &jobs);
    wait_for(db, LEFT, 0);
    let added: Vec<ServiceId> = added.iter().take(3).collect();
    assert_eq!(added, ["a::b", "a::b", "c::d"].map(service));
    assert_order(&store, "a::b", [3, 1, 2]);
    assert_order(&store, "c::d", [4]);
}

fn refused_list_stays_and_stops_no_other(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    leave(db, "", "3");
    leave(db, "a::b", "rubbish");
    leave(db, "a::b", "1");
    leave(db, "a::b", "2");
    let jobs = Jobs::start().unwrap();
    let (_job, _added) = start(&store, &jobs);
    wait_for(db, LEFT, 2);
    assert_order(&store, "a::b", [1, 2]);
    let refused = "select count(*) as number from intake_lists where refused_at > 0";
    let undecodable = format!("{refused} and error = 'rubbish'");
    let no_service = format!("{refused} and service_id = '' and error <> ''");
    assert_eq!([&undecodable, &no_service].map(|sql| db.number(sql)), [1, 1]);
}

fn list_that_no_queue_can_take_is_refused(db: &Database) {
    let intake_limits = IntakeLimits { open_batches: 2, ..IntakeLimits::default() };
    let store = db.open_with(StoreOptions { intake_limits, ..db.options() });
    leave(db, "a::b", "1 2 3");
    leave(db, "a::b", "4");
    let jobs = Jobs::start().unwrap();
    let (_job, _added) = start(&store, &jobs);
    wait_for(db, LEFT, 1);
    assert_order(&store, "a::b", [4]);
    let refused = "select count(*) as number from intake_lists where refused_at > 0";
    assert_eq!(db.number(refused), 1);
}

fn list_waits_with_those_after_it_while_the_queue_is_full(db: &Database) {
    let intake_limits = IntakeLimits { open_batches: 2, ..IntakeLimits::default() };
    let store = db.open_with(StoreOptions { intake_limits, ..db.options() });
    store.add_all(&[batch("a::b", 1)]);
    leave(db, "a::b", "2 3");
    leave(db, "a::b", "4");
    leave(db, "c::d", "5");
    let jobs = Jobs::start().unwrap();
    let (_job, _added) = start(&store, &jobs);
    let why = "select count(*) as number from intake_lists \
        where refused_at is null and error like '%open batches%'";
    wait_for(db, why, 1);
    wait_for(db, LEFT, 2);
    assert_eq!(store.depth(&service("a::b")).unwrap(), 1);
    assert_order(&store, "a::b", [1]);
    wait_for(db, LEFT, 1);
    assert_order(&store, "a::b", [2, 3]);
    wait_for(db, LEFT, 0);
    assert_order(&store, "a::b", [4]);
}

fn list_that_misses_transactions_lets_later_ones_pass(db: &Database) {
    let intake_limits = IntakeLimits { incomplete_batches: 1, ..IntakeLimits::default() };
    let options = db.scheduled(StrategyKind::Parallel, 100);
    let store = db.open_with(StoreOptions { intake_limits, ..options });
    store.add_all(&[numbered(SERVICE, 1_001)]);
    leave(db, SERVICE, "1002");
    leave(db, SERVICE, "1");
    let jobs = Jobs::start().unwrap();
    let (_job, _added) = start(&store, &jobs);
    wait_for(db, LEFT, 1);
    let why = "select count(*) as number from intake_lists \
        where refused_at is null and error like '%transactions%'";
    assert_eq!(db.number(why), 1);
    // Batch 1,001 misses nothing any more, so there is room for 1,002.
    store.free_all();
    db.later(1);
    wait_for(db, LEFT, 0);
    assert_eq!(store.commit_all_of(SERVICE), [1]);
    store.free_all();
    assert_eq!(store.commit_all_of(SERVICE), [1_001]);
}

fn two_instances_add_each_list_once(db: &Database) {
    let stores = [db.open(), db.open()];
    let jobs = Jobs::start().unwrap();
    for number in 1..=40 {
        leave(db, "a::b", &number.to_string());
    }
    let added = stores.each_ref().map(|store| start(store, &jobs)).map(|(job, added)| {
        wait_for(db, LEFT, 0);
        drop(job);
        added.iter().count()
    });
    assert_eq!(added.iter().sum::<usize>(), 40);
    assert_eq!(stores[0].depth(&service("a::b")).unwrap(), 40);
    assert_order(&stores[0], "a::b", 1..=40);
}
