//! What the databases make of the statements on a batch's way: each is looked at while a batch is
//! led from its beginning to its end, in a database that is large enough to punish a scan.

pub(crate) mod queries;
mod withdrawals;

use std::{cell::RefCell, collections::BTreeMap, fmt::Write as _};

use diesel::{
    QueryResult, QueryableByName, RunQueryDsl,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Text, Untyped},
};
use grid_batch_core::{
    Change, Decision, Event, HeaderId, LedgerStatus, NewBatch, Outcome, PendingBatchStore,
    Resolution, ServiceId, Timestamp, UnresolvedBatchStore,
};
use grid_batch_test_postgres::TestDatabase;

use crate::{
    ClaimOptions, ClaimStore, MonitorStore, Store, StoreError, StoreOptions,
    connection::Connection,
    statement::{ForOneRow, Statement},
};

/// A statement as it was run: its text, and the lines of its plan.
#[derive(Clone)]
struct Seen {
    sql: String,
    plan: Vec<String>,
}

thread_local! {
    static SEEN: RefCell<Option<BTreeMap<String, Seen>>> = const { RefCell::new(None) };
}

/// Notes what the database makes of a statement that is about to run, where a test asked for it.
pub(crate) fn note(
    connection: &mut Connection,
    statement: &Statement<'_>,
) -> Result<(), StoreError> {
    if SEEN.with_borrow(Option::is_none) {
        return Ok(());
    }
    let plan: Vec<PlanRow> = match connection {
        Connection::Postgres(inner) if statement.is_for_no_rows() => {
            let _ = inner;
            return Ok(());
        }
        Connection::Postgres(inner) => RunQueryDsl::load(Explain(statement), inner)?,
        Connection::Sqlite(inner) => match statement.for_each_row().next() {
            Some(one) => RunQueryDsl::load::<SqlitePlanRow>(ExplainOne(one), inner)?
                .into_iter()
                .map(|row| PlanRow { line: row.detail })
                .collect(),
            None => return Ok(()),
        },
    };
    let sql = statement.sql();
    let name = sql.lines().next().unwrap_or_default().trim_start_matches("-- ").to_owned();
    let plan = plan.into_iter().map(|row| row.line).collect();
    SEEN.with_borrow_mut(|seen| {
        if let Some(seen) = seen {
            seen.insert(name, Seen { sql, plan });
        }
    });
    Ok(())
}

struct Explain<'s, 'a>(&'s Statement<'a>);
struct ExplainOne<'s, 'a>(ForOneRow<'s, 'a>);

impl Query for Explain<'_, '_> {
    type SqlType = Untyped;
}
impl QueryId for Explain<'_, '_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}
impl<C> RunQueryDsl<C> for Explain<'_, '_> {}
impl QueryFragment<diesel::pg::Pg> for Explain<'_, '_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, diesel::pg::Pg>) -> QueryResult<()> {
        out.push_sql("explain ");
        self.0.walk_ast(out)
    }
}

impl Query for ExplainOne<'_, '_> {
    type SqlType = Untyped;
}
impl QueryId for ExplainOne<'_, '_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}
impl<C> RunQueryDsl<C> for ExplainOne<'_, '_> {}
impl QueryFragment<diesel::sqlite::Sqlite> for ExplainOne<'_, '_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, diesel::sqlite::Sqlite>) -> QueryResult<()> {
        out.push_sql("explain query plan ");
        self.0.walk_ast(out)
    }
}

#[derive(QueryableByName)]
struct PlanRow {
    #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
    line: String,
}

#[derive(QueryableByName)]
struct SqlitePlanRow {
    #[diesel(sql_type = Text)]
    detail: String,
}

/// An instance that outlives the test.
fn worker(store: &Store) -> ClaimStore {
    let day = std::time::Duration::from_secs(24 * 60 * 60);
    let options = ClaimOptions { expiry_1: day, expiry_2: 2 * day, ..ClaimOptions::default() };
    ClaimStore::register(store.clone(), options).unwrap()
}

/// 3,000 services that have been idle for long, and 500 with 20 open batches each.
fn load(claims: &ClaimStore) -> Vec<ServiceId> {
    let store = claims.store();
    let service = |kind: &str, number: u64| format!("{kind}::{number:04}").parse().unwrap();
    let idle: Vec<NewBatch> =
        (0..3_000).map(|number| new_batch(service("idle", number), number)).collect();
    let busy: Vec<NewBatch> =
        (0..10_000).map(|n| new_batch(service("busy", n % 500), 10_000 + n)).collect();
    for group in idle.chunks(1_000) {
        add(store, group);
        claims.take(1_000).unwrap();
        let ready = claims.ready_services(None, 1_000).unwrap();
        for event in [
            Event::Outcome { attempt: 1, outcome: Outcome::Accepted },
            Event::status(LedgerStatus::Committed),
        ] {
            if event != Event::status(LedgerStatus::Committed) {
                claims.take_round(&ready).unwrap();
            }
            let changes: Vec<Change> = group
                .iter()
                .map(|batch| Change::new(batch.service_id.clone(), batch.batch_id, event))
                .collect();
            store.record(&changes).unwrap();
        }
    }
    for group in busy.chunks(1_000) {
        add(store, group);
    }
    claims.take(1_000).unwrap();
    busy.into_iter().take(100).map(|batch| batch.service_id).collect()
}

fn new_batch(service_id: ServiceId, number: u64) -> NewBatch {
    let id = |number: u64| {
        let mut bytes = [0; 64];
        // Spread, as signatures are.
        bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        HeaderId::from_bytes(bytes)
    };
    NewBatch {
        service_id,
        batch_id: id(number),
        transaction_ids: vec![id(number + (1 << 40))],
        serialized_batch: vec![7; 600],
    }
}

fn add(store: &Store, batches: &[NewBatch]) {
    store.add(&[batches]).unwrap().remove(0).unwrap();
}

/// Leads 100 batches from their beginning to their end, and tells what was run on the way.
fn look_at_the_way_of_a_batch(
    claims: &ClaimStore,
    services: &[ServiceId],
) -> BTreeMap<String, Seen> {
    let store = claims.store();
    SEEN.set(Some(BTreeMap::new()));
    let new: Vec<NewBatch> =
        (0..).zip(services).map(|(n, service)| new_batch(service.clone(), 90_000 + n)).collect();
    add(store, &new);
    claims.ready_services(None, 100).unwrap();
    let taken = claims.take_round(services).unwrap();
    assert_eq!(taken.len(), services.len());
    let record = |event: Event| {
        let changes: Vec<Change> = taken
            .iter()
            .map(|taken| Change::new(taken.service_id.clone(), taken.batch_id, event))
            .collect();
        store.record(&changes).unwrap();
    };
    record(Event::Outcome { attempt: 1, outcome: Outcome::Accepted });
    let monitor = MonitorStore::new(claims.clone(), |_, _| ());
    monitor.get_pending_batch_ids(100).unwrap();
    monitor.get_pending_batch_ids_of(&[services[0].to_string()], 100).unwrap();
    record(Event::status(LedgerStatus::Pending));
    record(Event::status(LedgerStatus::Committed));
    record(Event::status(LedgerStatus::Committed));
    add(store, &new);
    what_goes_wrong(claims, services);
    store.remove_ended(Timestamp::from_micros(i64::MAX), None, 100).unwrap();
    SEEN.take().unwrap()
}

/// The side roads: a batch that was tried very often, one that is refused, one whose owner is gone,
/// and one that a person decides about.
fn what_goes_wrong(claims: &ClaimStore, services: &[ServiceId]) {
    let store = claims.store();
    store.pools.write().unwrap().batch_execute("update batch_statuses set attempts = 200").unwrap();
    let taken = claims.take_round(&services[..3]).unwrap();
    for (taken, outcome) in taken.iter().zip([Outcome::Busy, Outcome::Rejected]) {
        let event = Event::Outcome { attempt: taken.attempt, outcome };
        let change = Change::new(taken.service_id.clone(), taken.batch_id, event);
        store.record(&[change]).unwrap();
    }
    assert_eq!(claims.recover(Timestamp::from_micros(i64::MAX)).unwrap(), 1);

    let lost = &taken[2];
    let monitor = MonitorStore::new(claims.clone(), |_, _| ());
    let ids = [lost.batch_id.to_string()];
    let doubt = monitor.get_unresolved_batches(lost.service_id.as_str(), &ids).unwrap().remove(0);
    monitor.resolve(&[(doubt, Resolution::Hold("nobody knows".to_owned()))]).unwrap();
    assert_eq!(store.held_batches(None, 9).unwrap().len(), 1);
    store.decide(&lost.service_id, &lost.batch_id, Decision::Absent).unwrap();
}

/// 100,000 services that an instance claims which lives.
fn crowd(store: &Store) {
    let of_all = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
                  select 'crowd::' || i";
    let sql = format!(
        "insert into instances values ('crowd', null, {FAR}, {FAR});
         insert into services {of_all}, 0, 0 from n;
         insert into batch_statuses (service_id, lane) {of_all}, 0 from n;
         insert into service_id_claims {of_all}, 'crowd', 1 from n"
    );
    store.pools.write().unwrap().batch_execute(&sql).unwrap();
}

/// Services are claimed, worked on, lost, robbed and released, and what was run for it is told.
fn look_at_claims(store: &Store, services: &[ServiceId]) -> BTreeMap<String, Seen> {
    SEEN.set(Some(BTreeMap::new()));
    let past_the_store = |sql: &str| store.pools.write().unwrap().batch_execute(sql).unwrap();
    let register = |name: Option<&str>| {
        let name = name.map(str::to_owned);
        let options = ClaimOptions { name, even_out: true, ..ClaimOptions::default() };
        let registered = ClaimStore::register(store.clone(), options);
        // Where the file is ours, all others were ended.
        past_the_store(&format!(
            "update instances set expiry_1 = {FAR}, expiry_2 = {FAR} where instance_id = 'crowd'"
        ));
        registered
    };
    let one = register(Some("north")).unwrap();
    assert!(register(Some("north")).is_err());
    assert!(one.renew().unwrap());
    one.take_services(services).unwrap();
    one.take(300).unwrap();
    one.ready_services(None, 100).unwrap();
    let marked = one.take_round(services).unwrap();
    assert!(marked.len() > services.len() / 2, "{} batches", marked.len());

    let monitor = MonitorStore::new(one.clone(), |_, _| ());
    monitor.get_pending_batch_ids(100).unwrap();
    monitor.get_pending_batch_ids_of(&[services[0].to_string()], 100).unwrap();
    monitor
        .get_unresolved_batches(services[0].as_str(), &[marked[0].batch_id.to_string()])
        .unwrap();
    one.recover(Timestamp::from_micros(0)).unwrap();
    one.release_some(&services[..3]).unwrap();

    // A file's lock ends with its holder.
    drop((monitor, one));
    past_the_store("update instances set expiry_1 = 1, expiry_2 = 1 where instance_id <> 'crowd'");
    let other = register(None).unwrap();
    let in_doubt = [other.take_services(services).unwrap(), other.take(9_999).unwrap()];
    assert_eq!(in_doubt.map(|taken| taken.in_doubt.len()).iter().sum::<usize>(), marked.len());
    // Among so many it has more than its share.
    past_the_store(&format!(
        "insert into instances
         with recursive n(i) as (select 1 union all select i + 1 from n where i < 300)
         select 'guest ' || i, null, {FAR}, {FAR} from n"
    ));
    assert!(other.take(9).unwrap().claims.is_empty());
    other.release().unwrap();
    SEEN.take().unwrap()
}

/// A time that never comes.
const FAR: i64 = i64::MAX;

/// The texts, one after the other.
fn texts(seen: &BTreeMap<String, Seen>) -> String {
    let mut all = String::new();
    for statement in seen.values() {
        for line in statement.sql.lines() {
            writeln!(all, "{}", line.trim()).unwrap();
        }
        all.push('\n');
    }
    all
}

/// The lines of a plan that read a whole table, or a whole index: without a condition on it.
fn scans(plan: &[String]) -> Vec<&String> {
    let reads = |line: &str| line.contains("Scan using ") || line.contains("Index Scan on ");
    let is_node = |line: &str| line.contains("(cost=");
    plan.iter()
        .enumerate()
        .filter(|(at, line)| {
            let mut details = plan[at + 1..].iter().take_while(|line| !is_node(line));
            line.contains("Seq Scan on ")
                || reads(line) && !details.any(|line| line.contains("Index Cond:"))
        })
        .map(|(_, line)| line)
        .collect()
}

/// These read every lane that is busy, and sort them or pass over some: a number that does not
/// grow with what waits.
const READ_BUSY_LANES: [&str; 3] = ["due", "orphans", "ready_services"];

/// Whether a statement may read all that a line of its plan is about. Instances are few; and a fair
/// share is a share of all services, counted as seldom as an instance takes some.
fn may_scan(statement: &str, line: &str) -> bool {
    line.contains("instances")
        || (line.contains("batch_statuses_busy") && READ_BUSY_LANES.contains(&statement))
        || (line.contains("service_id_claims") && statement == "share")
}

/// Nothing is read that a statement may not read, as PostgreSQL plans them.
fn expect_no_scans_on_postgres(seen: impl IntoIterator<Item = (String, Seen)>) {
    for (name, statement) in seen {
        for line in scans(&statement.plan) {
            assert!(may_scan(&name, line), "{name} scans:\n{}", statement.plan.join("\n"));
        }
    }
}

/// The same, as SQLite plans them.
fn expect_no_scans_on_sqlite(seen: impl IntoIterator<Item = (String, Seen)>) {
    const SMALL: [&str; 5] = ["CONSTANT ROW", "x", "r", "t", "i"];
    for (name, statement) in seen {
        let scans = statement.plan.iter().filter_map(|line| line.strip_prefix("SCAN "));
        for scanned in scans.filter(|scanned| !SMALL.contains(scanned)) {
            assert!(may_scan(&name, scanned), "{name}:\n{}", statement.plan.join("\n"));
        }
    }
}

#[test]
fn on_postgres_nothing_is_scanned() {
    let database = TestDatabase::create();
    let store = Store::open(&database.url().parse().unwrap(), StoreOptions::default()).unwrap();
    let worker = worker(&store);
    let services = load(&worker);
    crowd(&store);
    store.pools.write().unwrap().batch_execute("vacuum analyze").unwrap();
    let seen = look_at_the_way_of_a_batch(&worker, &services);
    worker.release().unwrap();
    drop(worker);
    insta::assert_snapshot!("postgres", texts(&seen));
    let claims = look_at_claims(&store, &services[3..]);
    insta::assert_snapshot!("postgres_claims", texts(&claims));
    expect_no_scans_on_postgres(seen.into_iter().chain(claims));
}

#[test]
fn on_sqlite_nothing_is_scanned() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/plans.db", dir.path().display()).parse().unwrap();
    let store = Store::open(&url, StoreOptions::default()).unwrap();
    let worker = worker(&store);
    let services = load(&worker);
    crowd(&store);
    let seen = look_at_the_way_of_a_batch(&worker, &services);
    worker.release().unwrap();
    drop(worker);
    insta::assert_snapshot!("sqlite", texts(&seen));
    let claims = look_at_claims(&store, &services[3..]);
    insta::assert_snapshot!("sqlite_claims", texts(&claims));
    expect_no_scans_on_sqlite(seen.into_iter().chain(claims));
}
