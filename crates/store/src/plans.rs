//! Tests of the text and the plan of every statement. Each statement runs on both databases while batches go from
//! intake to their end, on tables that are large enough for a scan to show.

mod counts;
mod events;
pub(crate) mod queries;
mod scheduling;
mod tokens;
mod webhooks;
#[cfg(feature = "withdrawals")]
mod withdrawals;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
    slice,
    sync::Arc,
    time::Duration,
};

use diesel::{
    Connection as _, PgConnection, QueryResult, QueryableByName, RunQueryDsl,
    connection::SimpleConnection,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_query,
    sql_types::{Text, Untyped},
};
use grid_batch_core::batches::{
    AddOutcome, Change, ClientId, Decision, Event, FormatError, IntakeStore, LedgerStatus,
    NewBatch, RetentionStore, SignerId,
};
use grid_batch_core::claims::{ClaimKeeper, InstanceId, StatePauseStore};
use grid_batch_core::events::Recorded;
use grid_batch_core::evidence::{LedgerQuestionStore, Resolution};
use grid_batch_core::ledger::{
    CommitHistory, GroupObserver, LedgerIdentity, Outcome, SubmissionAnswer, SubmissionOutcome,
};
use grid_batch_core::operators::{
    ActionOutcome, Operator, OperatorAction, OperatorRequest, OperatorStore, OperatorTarget,
    OperatorVerb,
};
use grid_batch_core::polling::PendingBatchStore;
use grid_batch_core::queries::Sample;
use grid_batch_core::queue::RoundStore;
use grid_batch_core::{ItemId, ScopeId, ServiceId, ServiceScopeId, Timestamp};
use grid_batch_test_postgres::TestDatabase;

use crate::{
    ClaimOptions, ClaimStore, DelayOptions, IntakeLimits, MonitorStore, Store, StoreError,
    StoreObserver, StoreOptions,
    service_history::{declare_new, find_past_transactions},
    sql::{
        Connection, Dialect, EventSink, Scheduler, Statement,
        connection::Session,
        find_locked::{find_locked, find_stuck},
        groups::LOCK_LIMIT,
        hooks::NoHooks,
        namespace::tables_without_namespace,
        result_row,
        statement::StatementChunk,
    },
};

/// The text of a statement that ran, and the lines of its plan.
#[derive(Clone)]
struct RecordedStatement {
    sql: String,
    plan: Vec<String>,
}

/// The recorded statements by their names.
type Recording = BTreeMap<String, RecordedStatement>;

thread_local! {
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// Runs `work` and records its statements.
fn recording(work: impl FnOnce()) -> Recording {
    RECORDING.set(Some(Recording::new()));
    work();
    RECORDING.take().unwrap()
}

/// Records a statement that is about to run, if a test is recording.
pub(crate) fn record(
    connection: &mut Connection,
    statement: &Statement<'_>,
) -> Result<(), StoreError> {
    counts::count(connection, statement);
    let sql = statement.sql(connection.dialect());
    let name = sql.lines().next().and_then(statement_name);
    let name = name.unwrap_or_else(|| panic!("a statement without a name: {sql}")).to_owned();
    if RECORDING.with_borrow(Option::is_none) {
        return Ok(());
    }
    let plan: Vec<PlanRow> = match &mut connection.session {
        Session::Postgres(_) if statement.has_no_rows() => return Ok(()),
        Session::Postgres(inner) => generic_plan(inner, &sql)?,
        Session::Sqlite(inner) => match statement.chunks(statement.template()).next() {
            Some(chunk) => RunQueryDsl::load::<SqlitePlanRow>(ExplainChunk(chunk), &mut ***inner)?
                .into_iter()
                .map(|row| PlanRow { line: row.detail })
                .collect(),
            None => return Ok(()),
        },
    };
    let plan = plan.into_iter().map(|row| row.line).collect();
    RECORDING.with_borrow_mut(|recording| {
        if let Some(recording) = recording {
            recording.insert(name, RecordedStatement { sql, plan });
        }
    });
    Ok(())
}

/// The name in a comment such as `-- take_round`.
fn statement_name(line: &str) -> Option<&str> {
    let name = line.strip_prefix("-- ")?;
    let end = name.find(|c: char| !(c.is_ascii_lowercase() || c == '_')).unwrap_or(name.len());
    (end > 0).then(|| &name[..end])
}

/// The generic plan of PostgreSQL, which applies to all values.
fn generic_plan(connection: &mut PgConnection, sql: &str) -> QueryResult<Vec<PlanRow>> {
    let mut prepared = String::from("prepare explained as ");
    let mut values = 0;
    for (at, part) in sql.split('?').enumerate() {
        if at > 0 {
            write!(prepared, "${at}").unwrap();
        }
        prepared.push_str(part);
        values = at;
    }
    connection.batch_execute("set plan_cache_mode = force_generic_plan")?;
    connection.batch_execute(&prepared)?;
    let values = match values {
        0 => String::new(),
        values => format!("({})", vec!["null"; values].join(", ")),
    };
    let plan = sql_query(format!("explain execute explained{values}")).load(connection);
    connection.batch_execute("deallocate explained; set plan_cache_mode = auto")?;
    plan
}

struct ExplainChunk<'s, 'a>(StatementChunk<'s, 'a>);

impl Query for ExplainChunk<'_, '_> {
    type SqlType = Untyped;
}
impl QueryId for ExplainChunk<'_, '_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}
impl<C> RunQueryDsl<C> for ExplainChunk<'_, '_> {}
impl QueryFragment<diesel::sqlite::Sqlite> for ExplainChunk<'_, '_> {
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

result_row! {
    struct SqlitePlanRow {
        detail: String,
    }
}

/// The limit of open batches of a service.
const OPEN_BATCHES: u64 = 30;

/// Limits with which intake checks everything but rarely refuses anything.
fn options_with_limits() -> StoreOptions {
    let intake_limits = IntakeLimits {
        open_batches: OPEN_BATCHES,
        open_batches_of_client: 1_000_000,
        missing_transactions_of_signer: 1_000_000,
        incomplete_batches: 1_000_000,
        new_services_per_signer: 10_000,
        new_services: 10_000,
    };
    StoreOptions { intake_limits, ..StoreOptions::default() }
}

/// An instance whose lease outlasts the test.
fn register_worker(store: &Store) -> ClaimStore {
    let day = Duration::from_secs(24 * 60 * 60);
    let options =
        ClaimOptions { idle_expiry: day, full_expiry: 2 * day, ..ClaimOptions::default() };
    ClaimStore::register(store.clone(), options).unwrap()
}

/// Adds 3,000 services without open batches, and 500 with 20 open batches each.
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
        claims.take_next(&ready).unwrap();
        let accepted = Event::Outcome { attempt: 1, outcome: Outcome::Accepted };
        for event in [accepted, Event::status(LedgerStatus::Committed)] {
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
        // Like signatures, the ids have no zeros in the middle.
        let mut bytes = [1; 64];
        // Like signatures, they are spread over the index.
        bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        ItemId::from_bytes(bytes)
    };
    NewBatch {
        service_id,
        batch_id: id(number),
        signer: Some(SignerId::from_bytes([2; SignerId::BYTES])),
        transaction_ids: vec![id(number + (1 << 40))],
        serialized_batch: vec![7; 600],
        declared_access: None,
        label: None,
        client: Some(ClientId::Key(SignerId::from_bytes([2; SignerId::BYTES]))),
        declared_new: false,
        deadline: None,
        trace: None,
    }
}

fn add(store: &Store, batches: &[NewBatch]) {
    store.add(&[batches]).unwrap().remove(0).unwrap();
}

/// Adds a batch in a transaction of a program.
fn add_in_transaction(store: &Store, url: &str) {
    let batch = new_batch("new::0001".parse().unwrap(), 96_000);
    let added = PgConnection::establish(url).unwrap().transaction(|connection| {
        let added = store.add_in_transaction(connection, &[batch]).unwrap();
        QueryResult::Ok(added.unwrap())
    });
    assert_eq!(added.unwrap(), [AddOutcome::Stored]);
}

/// Adds the batches of a list, refuses a list, and has one wait whose service is full.
fn add_lists(store: &Store) {
    let read = |service: &ServiceId, list: &[u8]| match list {
        b"refused" => Err(FormatError::Empty),
        b"full" => {
            let numbers = 0..OPEN_BATCHES;
            Ok(numbers.map(|number| new_batch(service.clone(), 97_000 + number)).collect())
        }
        _ => Ok(vec![new_batch(service.clone(), 98_000)]),
    };
    let bytes = if store.dialect().locks_rows() { "bytea" } else { "blob" };
    for list in ["one", "refused", "full"] {
        let row = format!("('lists::0001', cast('{list}' as {bytes}))");
        execute(store, &format!("insert into intake_lists (service_id, list) values {row}"));
    }
    assert_eq!(store.services_with_lists().unwrap(), ["lists::0001"]);
    assert!(!store.add_lists_of("lists::0001", read, &|_: Recorded<'_>| ()).unwrap());
}

/// Takes 100 batches from intake to their end.
fn process_batches(claims: &ClaimStore, services: &[ServiceId]) {
    let store = claims.store();
    let new: Vec<NewBatch> =
        (0..).zip(services).map(|(n, service)| new_batch(service.clone(), 90_000 + n)).collect();
    add(store, &new);
    claims.ready_services(None, 100).unwrap();
    let taken = claims.take_next(services).unwrap();
    assert_eq!(taken.len(), services.len());
    let record = |event: Event| {
        let changes: Vec<Change> = taken
            .iter()
            .map(|taken| Change::new(taken.service_id.clone(), taken.batch_id, event))
            .collect();
        store.record(&changes).unwrap();
    };
    record(Event::Outcome { attempt: 1, outcome: Outcome::Accepted });
    let monitor = MonitorStore::new(claims.clone(), |_: Recorded<'_>| ());
    monitor.get_pending_batch_ids(100).unwrap();
    monitor.get_pending_batch_ids_of(&[services[0].to_string()], 100).unwrap();
    assert_eq!(monitor.next_batches(services).unwrap().len(), 8 * services.len());
    record(Event::status(LedgerStatus::Pending));
    record(Event::status(LedgerStatus::Committed));
    record(Event::status(LedgerStatus::Committed));
    add(store, &new);
    let labelled = new_batch("new::0000".parse().unwrap(), 95_000);
    let label = Some("of a client".parse().unwrap());
    let client = Some(ClientId::Key(SignerId::from_bytes([3; SignerId::BYTES])));
    let deadline = Some(grid_batch_core::batches::Deadline::Height(7));
    add(store, &[NewBatch { label, client, deadline, ..labelled }]);
    refuse_a_full_queue(store);
    process_failures(claims, services);
    look_for_locked_rows(store, services);
    events::read_events(store, &taken[0].service_id, &taken[0].batch_id);
    webhooks::use_webhooks(store);
    tokens::use_tokens(store);
    store.add_sample(&Sample::default()).unwrap();
    store.samples(Timestamp::from_micros(0), Sample::PERIOD).unwrap();
    use_histories(store, &taken[0].service_id, &taken[0].batch_id);
    assert!(store.start_retention(Duration::from_secs(1)).unwrap());
    store.count_removable(Timestamp::from_micros(i64::MAX), None, 100).unwrap();
    store.remove_ended(Timestamp::from_micros(i64::MAX), None, 100).unwrap();
}

/// Records and reads what a service has committed.
fn use_histories(store: &Store, service_id: &ServiceId, batch_id: &ItemId) {
    store.set_history_known(slice::from_ref(service_id), true).unwrap();
    store.read_history(service_id, batch_id).unwrap();
    let ids: Vec<ItemId> = (0..200).map(|byte| ItemId::from_bytes([byte; 64])).collect();
    store.add_applied(service_id, &ids).unwrap();
    let mut connection = store.pools.write().unwrap();
    let transactions = ids.iter().map(|id| (service_id.as_str(), *id));
    find_past_transactions(&mut connection, transactions).unwrap();
    declare_new(&mut connection, vec![1]).unwrap();
}

/// Searches for locked rows, as a group does after it has met one.
fn look_for_locked_rows(store: &Store, services: &[ServiceId]) {
    let services = services.iter().cloned().collect();
    let mut connection = store.pools.write().unwrap();
    let locked = connection
        .transaction_with_lock_limit(LOCK_LIMIT, |connection| find_locked(connection, &services));
    assert!(locked.unwrap().is_empty());
    drop(connection);
    assert!(find_stuck(store, &services).unwrap().is_empty());
}

/// Adds more batches to a new service than its limit allows.
fn refuse_a_full_queue(store: &Store) {
    let service_id: ServiceId = "full::0000".parse().unwrap();
    let list: Vec<NewBatch> =
        (0..=OPEN_BATCHES).map(|number| new_batch(service_id.clone(), 96_000 + number)).collect();
    assert!(store.add(&[&list]).unwrap()[0].is_err());
}

/// Processes a batch with many attempts, a rejected one, and a lost one about which an operator decides.
fn process_failures(claims: &ClaimStore, services: &[ServiceId]) {
    let store = claims.store();
    execute(store, "update lanes set attempts = 200");
    process_delays(claims, services);
    let taken = claims.take_next(&services[..3]).unwrap();
    for (taken, outcome) in taken.iter().zip([Outcome::Busy, Outcome::Rejected]) {
        let event = Event::Outcome { attempt: taken.attempt, outcome };
        let change = |event| Change::new(taken.service_id.clone(), taken.batch_id, event);
        store.record(&[change(event), change(Event::status(LedgerStatus::Committed))]).unwrap();
    }
    assert_eq!(claims.recover(&claims.with_submitter().unwrap()).unwrap().len(), 1);

    let lost = &taken[2];
    let monitor = MonitorStore::new(claims.clone(), |_: Recorded<'_>| ());
    let ids = [lost.batch_id.to_string()];
    let batch = monitor.get_unresolved_batches(lost.service_id.as_str(), &ids).unwrap().remove(0);
    monitor.resolve(&[(batch, Resolution::Hold("no evidence".to_owned()))]).unwrap();
    assert_eq!(store.held_batches(None, 9).unwrap().len(), 1);
    store.decide(&lost.service_id, &lost.batch_id, lost.attempt, Decision::Absent).unwrap();
    process_waiting_holds(store, &lost.service_id);
}

/// Delays a batch and ends its delay.
fn process_delays(claims: &ClaimStore, services: &[ServiceId]) {
    let store = claims.store();
    let taken = claims.take_next(&services[..1]).unwrap().remove(0);
    let observer = StoreObserver::new(store.clone(), DelayOptions::default(), |_: Recorded<'_>| ());
    let outcome = SubmissionOutcome {
        batch_header: taken.batch_id.to_string(),
        scope_id: ServiceScopeId::from_service_id(&taken.service_id).unwrap(),
        attempt_id: Some(taken.attempt_id()),
        deadline: taken.deadline,
        attempts: 1,
        answer: SubmissionAnswer {
            outcome: Outcome::NotSent,
            status: None,
            message: None,
            retry_after: None,
        },
    };
    observer.notify_group(&[outcome]).unwrap();
    assert_eq!(store.end_delays(Some(&taken.service_id)).unwrap().batches.len(), 1);
}

/// Holds, releases and ends batches that wait behind another one.
fn process_waiting_holds(store: &Store, service_id: &ServiceId) {
    let open = store.open_batches(service_id, 3).unwrap();
    let [head, held, cancelled] = &open[..] else { panic!("{} open batches", open.len()) };
    store.hold_batch(service_id, &held.batch_id, "look first").unwrap();
    store.release_batch(service_id, &held.batch_id, None).unwrap();
    store.hold_batch(service_id, &held.batch_id, "look first").unwrap();
    store.decide(service_id, &cancelled.batch_id, 0, Decision::Invalid).unwrap();
    let attempts = head.progress.attempts;
    store.decide(service_id, &head.batch_id, attempts, Decision::Committed).unwrap();
    pause_and_resume(store, service_id);
    assert_eq!(store.held_batches(None, 9).unwrap().len(), 1);
}

/// Pauses a service and all services, and resumes them.
fn pause_and_resume(store: &Store, service_id: &ServiceId) {
    for verb in [OperatorVerb::Pause, OperatorVerb::Resume] {
        for target in [OperatorTarget::Service(service_id.clone()), OperatorTarget::AllServices] {
            let (reason, operator) = (None, Operator::program());
            let action = OperatorAction { verb, target, reason, operator, dry_run: false };
            assert!(matches!(store.act(&action).unwrap(), ActionOutcome::Done(_)));
        }
    }
}

/// Releases a claim, which is refused while a batch is with a submitter.
fn release_claim(store: &Store, service_id: &ServiceId) {
    let (reason, operator) = (None, Operator::program());
    let (verb, target) = (OperatorVerb::ReleaseClaim, OperatorTarget::Service(service_id.clone()));
    let action = OperatorAction { verb, target, reason, operator, dry_run: false };
    store.act(&action).unwrap();
}

/// Drains an instance, and ends the drain.
fn drain_and_resume(store: &Store, instance: &InstanceId) {
    for verb in [OperatorVerb::Drain, OperatorVerb::Resume] {
        let (reason, operator) = (None, Operator::program());
        let target = OperatorTarget::Instance(instance.clone());
        let action = OperatorAction { verb, target, reason, operator, dry_run: false };
        assert!(matches!(store.act(&action).unwrap(), ActionOutcome::Done(_)));
    }
}

/// An expiry that is never past.
const NEVER: i64 = i64::MAX;

/// Adds 100,000 services that a running instance claims.
fn load_claimed_services(store: &Store) {
    let ids = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
               select 'crowd::' || i";
    execute(
        store,
        &format!(
            "insert into instances (instance_id, expiry_1, expiry_2) values ('crowd', {NEVER}, {NEVER});
             insert into services {ids}, 0, 0 from n;
             insert into lanes (service_id, lane) {ids}, 0 from n;
             insert into service_id_claims {ids}, 'crowd', 1, null, null from n"
        ),
    );
}

/// Adds rows of waiting batches, as in services with several lanes, because the plan for an empty table is different.
fn load_waiting_batches(store: &Store) {
    execute(
        store,
        "insert into waiting_batches (batch_seq, service_id, position)
         select b.seq, b.service_id, b.created_at from batches b
         where b.ended_at is null and b.service_id > 'busy::0450'
             and b.seq not in (select l.batch_seq from lanes l where l.busy)",
    );
}

/// Assigns batches to fifty clients, who declare them as new, and records histories of services.
fn load_client_batches(store: &Store) {
    execute(
        store,
        "insert into service_histories (service_id, is_known) select 'x' || service_id, true from services;
         insert into declared_new_batches (batch_seq) select seq from batches;
         delete from client_batches;
         insert into client_batches (batch_seq, client) select seq, 'key:' || seq % 50 from batches",
    );
}

/// Turns ended batches into withdrawals.
fn load_ended_withdrawals(store: &Store) {
    execute(
        store,
        "insert into withdrawals (withdrawal_id, service_id, kind, pool, beneficiary, amount,
             batch_seq, created_at)
         select substr(batch_id, 2, 16), service_id, 'propose', 'pool', 'member', '1', seq, 1
         from batches where ended_at is not null and service_id > 'idle::2000'",
    );
}

/// Runs SQL that is not recorded.
fn execute(store: &Store, sql: &str) {
    store.pools.write().unwrap().batch_execute(sql).unwrap();
}

/// Claims services, works on them, loses them to another instance, and releases them.
fn process_claims(store: &Store, services: &[ServiceId]) {
    let register = |name: Option<&str>| {
        let name = name.map(str::to_owned);
        let options = ClaimOptions { name, fair_share: true, ..ClaimOptions::default() };
        let registered = ClaimStore::register(store.clone(), options);
        // Registering with an SQLite file has expired it.
        execute(
            store,
            &format!(
                "update instances set expiry_1 = {NEVER}, expiry_2 = {NEVER}
                 where instance_id = 'crowd'"
            ),
        );
        registered
    };
    let one = register(Some("north")).unwrap();
    assert!(register(Some("north")).is_err());
    assert!(one.renew().unwrap());
    let less = LedgerIdentity { id: "chain 1".to_owned(), ..LedgerIdentity::new("ledger") };
    let ledger = LedgerIdentity { id: "chain 1, genesis block 2".to_owned(), ..less.clone() };
    one.confirm_ledger(&less).unwrap();
    one.confirm_ledger(&ledger).unwrap();
    assert!(
        store.rebind_ledger(&ledger, &OperatorRequest::program()).is_err(),
        "an instance is running"
    );
    one.take_services(services).unwrap();
    one.take(300).unwrap();
    one.ready_services(None, 100).unwrap();
    let taken = one.take_next(services).unwrap();
    assert!(taken.len() > services.len() / 2, "{} batches", taken.len());
    one.with_submitter().unwrap();
    one.stopped(&services[..3]).unwrap();
    for target in [
        OperatorTarget::Service(services[0].clone()),
        OperatorTarget::AllServices,
        OperatorTarget::Instance(InstanceId::new("crowd")),
    ] {
        store.being_sent(&target).unwrap();
    }
    for differ in [true, false] {
        assert!(one.set_states_differ(&services[1], differ).unwrap());
    }
    store.measure_clock().unwrap();
    release_claim(store, &services[0]);
    drain_and_resume(store, &InstanceId::new("crowd"));
    one.release_services(&services[..3]).unwrap();

    // Dropping the store releases the lock of an SQLite file.
    drop(one);
    execute(store, "update instances set expiry_1 = 1, expiry_2 = 1 where instance_id <> 'crowd'");
    let other = register(None).unwrap();
    other.confirm_ledger(&ledger).unwrap();
    expire_idle_instance(store);
    let idle: ServiceId = "idle::0001".parse().unwrap();
    let taken_over =
        [other.take_services(&[services, &[idle]].concat()).unwrap(), other.take(9_999).unwrap()];
    assert_eq!(
        taken_over.map(|takeover| takeover.in_doubt.len()).iter().sum::<usize>(),
        taken.len()
    );
    exceed_share(store);
    assert!(other.take(9).unwrap().claims.is_empty());
    other.release().unwrap();
    other.register_again().unwrap();
    execute(store, "update instances set expiry_1 = 1, expiry_2 = 1");
    store.rebind_ledger(&ledger, &OperatorRequest::program()).unwrap();
}

/// Gives 100 services to an instance past its idle expiry.
fn expire_idle_instance(store: &Store) {
    execute(
        store,
        &format!(
            "insert into instances (instance_id, expiry_1, expiry_2) values ('idle', 1, {NEVER});
             update service_id_claims set claimant = 'idle'
             where service_id between 'idle::0000' and 'idle::0099'"
        ),
    );
}

/// Adds so many instances that every other instance has more than its share.
fn exceed_share(store: &Store) {
    execute(
        store,
        &format!(
            "insert into instances (instance_id, expiry_1, expiry_2)
             with recursive n(i) as (select 1 union all select i + 1 from n where i < 300)
             select 'guest ' || i, {NEVER}, {NEVER} from n"
        ),
    );
}

/// The texts of the statements, one after the other.
fn texts(recording: &Recording) -> String {
    let mut all = String::new();
    for statement in recording.values() {
        for line in statement.sql.lines() {
            writeln!(all, "{}", line.trim()).unwrap();
        }
        all.push('\n');
    }
    all
}

/// The lines of a PostgreSQL plan that read a whole table or index.
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

/// These statements read every busy lane. There are as many as services with open batches, however long their queues
/// are.
const READ_BUSY_LANES: [&str; 9] = [
    "being_sent",
    "being_sent_of_instance",
    "due_batches",
    "find_orphans",
    "find_other_lanes",
    "held_services",
    "open_services",
    "ready_services",
    "restored_services",
];

/// These statements read one row of the index of missing transactions, those of one batch for an operator, or all to
/// find out what fills a queue.
const READ_MISSING: [&str; 3] =
    ["count_signers_that_miss", "find_missed_batches", "release_overdue"];

/// This statement looks up batches by their numbers, but PostgreSQL scans here because the table has hardly any rows.
const READ_WAITING: &str = "load_positions";

/// Whether a statement may read everything that a line of its plan names. There are few instances, webhooks and tokens.
/// Lists wait only for a full queue, a lock or missing transactions.
/// Claims are counted at most once for each take. New services are limited, and counted only when a service is opened.
fn may_scan(statement: &str, line: &str) -> bool {
    line.contains("instances")
        || line.contains("webhooks")
        || line.contains("tokens")
        || (line.contains("lanes_busy") && READ_BUSY_LANES.contains(&statement))
        || (line.contains("service_id_claims") && statement == "count_claims")
        || (line.contains("missing_transactions") && READ_MISSING.contains(&statement))
        || (line.contains("waiting_batches_pkey") && statement == READ_WAITING)
        || (line.contains("new_services") && statement == "count_new_services")
        || (line.contains("intake_lists_to_add") && statement == "find_services_with_lists")
}

fn expect_no_scans_on_postgres(recording: &Recording) {
    let scanning = recording.iter().filter(|(name, statement)| {
        scans(&statement.plan).into_iter().any(|line| !may_scan(name, line))
    });
    expect_none(scanning);
}

fn expect_no_scans_on_sqlite(recording: &Recording) {
    const SMALL: [&str; 5] = ["CONSTANT ROW", "x", "r", "t", "i"];
    let is_group = |scanned: &str| scanned.ends_with("-ROW VALUES CLAUSE");
    let scanning = recording.iter().filter(|(name, statement)| {
        let mut scans = statement.plan.iter().filter_map(|line| line.strip_prefix("SCAN "));
        scans.any(|it| !SMALL.contains(&it) && !is_group(it) && !may_scan(name, it))
    });
    expect_none(scanning);
}

/// Shows all statements that scan, with their plans.
fn expect_none<'r>(scanning: impl Iterator<Item = (&'r String, &'r RecordedStatement)>) {
    let plan = |(name, statement): (&String, &RecordedStatement)| {
        format!("{name} scans:\n{}", statement.plan.join("\n"))
    };
    let plans: Vec<String> = scanning.map(plan).collect();
    assert!(plans.is_empty(), "{}", plans.join("\n\n"));
}

/// Statements that only operators and tests run, or that run once per connection.
const WITHOUT_PLAN_TEST: [&str; 33] = [
    "add_to_claim_epochs",
    "add_to_lane_epochs",
    "begin_event_generation",
    "count",
    "count_open_batches",
    "count_open_services",
    "count_waiting",
    "database_server",
    "depths",
    "durability",
    "has_table",
    "has_withdrawals",
    "database_name",
    "session_settings",
    "journal_mode",
    "lanes_after_downgrade",
    "list",
    "lock_all_services",
    "lock_database_state",
    "mark_restored",
    "notify_others",
    "notify_owners",
    "open_states",
    "probe",
    "put_heads_in_doubt",
    "record_server",
    "forget_histories",
    "transactions_to_keep",
    "schema_objects",
    "schema_versions",
    "serialized_batch",
    "services_with_halts",
    "show_event_groups",
];

/// Statements that SQLite does not need. It has one instance at a time, so registering expires all others and names do
/// not matter. It has no clock of its own, and does not lock rows.
const ONLY_ON_POSTGRES: [&str; 9] = [
    "event_groups_of_begun",
    "event_groups_of_running",
    "event_snapshot",
    "find_further_lanes",
    "find_instance_by_name",
    "lock_further_lanes",
    "lock_services",
    "notify_owners_at_commit",
    "read_clock",
];
const ONLY_ON_SQLITE: [&str; 3] = ["count_send", "expire_all_instances", "insert_event_group"];

/// Asserts that each table name gets the namespace.
fn expect_namespace(recordings: &[&Recording]) {
    for recorded in recordings.iter().flat_map(|recording| recording.values()) {
        for dialect in [Dialect::Postgres, Dialect::Sqlite] {
            let found = tables_without_namespace(dialect, &recorded.sql);
            assert!(found.is_empty(), "{found:?} in {}", recorded.sql);
        }
    }
}

/// Asserts that every statement in the source has a text snapshot and a plan test.
fn expect_all_statements(recordings: &[&Recording], not_here: &[&str]) {
    expect_namespace(recordings);
    let recorded: BTreeSet<&str> =
        recordings.iter().flat_map(|recording| recording.keys()).map(String::as_str).collect();
    let mut missing = statements_in_source();
    missing.retain(|name| {
        ![WITHOUT_PLAN_TEST.as_slice(), not_here].concat().contains(&name.as_str())
            && !recorded.contains(name.as_str())
    });
    assert!(missing.is_empty(), "statements without a plan test: {missing:?}");
}

/// The names of all statements in the source of this crate.
fn statements_in_source() -> BTreeSet<String> {
    fn add_names(folder: &Path, names: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add_names(&path, names);
            } else if !path.ends_with("plans.rs") {
                let source = fs::read_to_string(&path).unwrap_or_default();
                let comments = source.match_indices("\"-- ").map(|(at, _)| &source[at + 1..]);
                names.extend(comments.filter_map(statement_name).map(str::to_owned));
            }
        }
    }
    let mut names = BTreeSet::new();
    add_names(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut names);
    names
}

#[cfg(feature = "withdrawals")]
#[test]
fn statements_have_good_plans_on_postgres() {
    let database = TestDatabase::create();
    let store = Store::open(&database.url().parse().unwrap(), options_with_limits()).unwrap();
    let worker = register_worker(&store);
    let services = load(&worker);
    load_claimed_services(&store);
    load_ended_withdrawals(&store);
    load_waiting_batches(&store);
    load_client_batches(&store);
    execute(&store, "vacuum analyze");
    let batches = recording(|| process_batches(&worker, &services));
    worker.release().unwrap();
    drop(worker);
    let claims = recording(|| process_claims(&store, &services[3..]));
    let lists = recording(|| add_lists(&store));
    let program = recording(|| add_in_transaction(&store, database.url()));
    let withdrawals = withdrawals::record_on_postgres();
    let scheduling = scheduling::record_on_postgres();
    insta::assert_snapshot!("postgres", texts(&batches));
    insta::assert_snapshot!("postgres_claims", texts(&claims));
    let recordings = [&batches, &claims, &lists, &program, &withdrawals, &scheduling];
    recordings.iter().for_each(|recording| expect_no_scans_on_postgres(recording));
    expect_all_statements(&recordings, &ONLY_ON_SQLITE);
}

#[cfg(feature = "withdrawals")]
#[test]
fn statements_have_good_plans_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/plans.db", dir.path().display()).parse().unwrap();
    let store = Store::open(&url, options_with_limits()).unwrap();
    let worker = register_worker(&store);
    let services = load(&worker);
    load_claimed_services(&store);
    let batches = recording(|| process_batches(&worker, &services));
    worker.release().unwrap();
    drop(worker);
    let claims = recording(|| process_claims(&store, &services[3..]));
    let lists = recording(|| add_lists(&store));
    let withdrawals = withdrawals::record_on_sqlite();
    let scheduling = scheduling::record_on_sqlite();
    insta::assert_snapshot!("sqlite", texts(&batches));
    insta::assert_snapshot!("sqlite_claims", texts(&claims));
    let recordings = [&batches, &claims, &lists, &withdrawals, &scheduling];
    recordings.iter().for_each(|recording| expect_no_scans_on_sqlite(recording));
    expect_all_statements(&recordings, &ONLY_ON_POSTGRES);
}

/// The tables that only withdrawals use.
pub(crate) const TABLES_OF_WITHDRAWALS: [&str; 6] = [
    "rewards",
    "withdrawals",
    "payment_sums",
    "last_failures",
    "account_nonces",
    "signed_transactions",
];

#[test]
fn no_statement_about_withdrawals_without_hooks() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/plans.db", dir.path().display()).parse().unwrap();
    let mut store = Store::open(&url, options_with_limits()).unwrap();
    let events = EventSink::new(true);
    store.scheduler = Arc::new(Scheduler::new(Arc::default(), events, Arc::new(NoHooks)));
    let worker = register_worker(&store);
    let services = load(&worker);
    let recorded = recording(|| process_batches(&worker, &services));
    for (name, statement) in &recorded {
        let table = TABLES_OF_WITHDRAWALS.iter().find(|table| statement.sql.contains(**table));
        assert_eq!(table, None, "{name}");
    }
}
