//! How many statements a group of batches runs from intake to its end. On PostgreSQL, each costs a round trip and more
//! processor time than most rows.

use std::cell::Cell;

use grid_batch_core::ServiceId;
use grid_batch_core::batches::{Change, Event, LedgerStatus, NewBatch};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::events::Recorded;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::polling::PendingBatchStore as _;
use grid_batch_test_postgres::TestDatabase;

use super::{add, new_batch, register_worker};
use crate::{
    ClaimStore, DatabaseUrl, MonitorStore, Store, StoreOptions,
    sql::{Connection, Dialect, Statement},
};

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// Counts a statement that is about to run, once for each run for its rows.
pub(super) fn count(connection: &Connection, statement: &Statement<'_>) {
    let times = match connection.dialect() {
        Dialect::Postgres => usize::from(!statement.has_no_rows()),
        Dialect::Sqlite => statement.chunks(statement.template()).count(),
    };
    COUNT.set(COUNT.get() + times);
}

/// The number of statements that each step runs for a group of 100 batches: intake, a round, the outcomes, the polls
/// and the ends.
fn statements_of_a_group(url: &DatabaseUrl) -> [usize; 5] {
    let store = Store::open(url, StoreOptions::default()).unwrap();
    let claims = register_worker(&store);
    let services: Vec<ServiceId> =
        (0..100).map(|number| format!("busy::{number:04}").parse().unwrap()).collect();
    let batches = |first: u64| -> Vec<NewBatch> {
        (first..).zip(&services).map(|(number, id)| new_batch(id.clone(), number)).collect()
    };
    add(&store, &batches(1_000));
    claims.take(1_000).unwrap();
    process(&claims, &services);
    let counted = |work: &mut dyn FnMut()| {
        COUNT.set(0);
        work();
        COUNT.get()
    };
    let intake = counted(&mut || add(&store, &batches(2_000)));
    let [round, outcomes, polls, ends] = process(&claims, &services);
    let label = Some("of a client".parse().unwrap());
    let with_label = |batch| NewBatch { label: label.clone(), ..batch };
    let labelled: Vec<NewBatch> = batches(3_000).into_iter().map(with_label).collect();
    assert_eq!(counted(&mut || add(&store, &labelled)), intake, "a label costs no statement");
    [intake, round, outcomes, polls, ends]
}

/// Processes a batch of each service until its end.
fn process(claims: &ClaimStore, services: &[ServiceId]) -> [usize; 4] {
    let monitor = MonitorStore::new(claims.clone(), |_: Recorded<'_>| ());
    let names: Vec<String> = services.iter().map(ToString::to_string).collect();
    COUNT.set(0);
    let taken = claims.take_next(services).unwrap();
    assert_eq!(taken.len(), services.len());
    let round = COUNT.replace(0);
    let record = |event: Event| {
        let change = |(id, batch_id): (&ServiceId, _)| Change::new(id.clone(), batch_id, event);
        let batches = taken.iter().map(|taken| (&taken.service_id, taken.batch_id));
        claims.store().record(&batches.map(change).collect::<Vec<_>>()).unwrap();
    };
    record(Event::Outcome { attempt: 1, outcome: Outcome::Accepted });
    let outcomes = COUNT.replace(0);
    let pending = monitor.get_pending_batch_ids_of(&names, 1_000).unwrap().unwrap();
    assert_eq!(pending.len(), services.len());
    let polls = COUNT.replace(0);
    record(Event::status(LedgerStatus::Committed));
    [round, outcomes, polls, COUNT.replace(0)]
}

#[test]
fn group_runs_few_statements_on_postgres() {
    let database = TestDatabase::create();
    let counted = statements_of_a_group(&database.url().parse().unwrap());
    assert_eq!(counted, [8, 3, 4, 1, 5]);
}

/// A hundred rows are chunks of 32, 32, 32, 3 and 1, so five runs. A statement that is not run in chunks runs a hundred
/// times.
#[test]
fn group_runs_few_statements_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/counts.db", dir.path().display()).parse().unwrap();
    let counted = statements_of_a_group(&url);
    let chunks = 5;
    // Events need one statement for the group and those for its rows.
    let events = 1 + chunks;
    // A round is counted, because the count is stored beside the file.
    let others = [6 * chunks + 100, 2 * chunks + 1, 100 + chunks, chunks, 100 + 2 * chunks];
    let [intake, round, outcomes, polls, ends] = others;
    let with_events = [intake + events, round + events, outcomes + events, polls, ends + events];
    assert_eq!(counted, with_events);
}
