//! Test databases and batches, and helpers that most tests use.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    ops::Deref,
    path::PathBuf,
    process,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl, SqliteConnection,
    connection::SimpleConnection, sql_query,
};
use grid_batch_core::batches::{
    AddOutcome, Change, ChangeOutcome, Event, IntakeStore, LedgerStatus, NewBatch, StoredBatch,
};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::events::Recorded;
use grid_batch_core::evidence::{EndedDependents, Evidence, MissingTransactionStore};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::polling::{PendingBatchStore, PollPace};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::{RoundStore, TakenBatch};
use grid_batch_core::{BatchResult, ItemId, ManualClock, ServiceId, Timestamp};
use grid_batch_store::{
    ClaimOptions, ClaimStore, DatabaseClock, DatabaseUrl, MonitorStore, PendingBatch, Store,
    StoreOptions,
};
use grid_batch_test_postgres::TestDatabase;
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// The request of a program.
pub fn by_program() -> OperatorRequest {
    OperatorRequest::program()
}

/// An empty database of one of the two kinds, for one test.
pub struct Database {
    kind: Kind,
    name: String,
    pub clock: Arc<ManualClock>,
    worker: Arc<OnceLock<ClaimStore>>,
}

enum Kind {
    Postgres(TestDatabase),
    Sqlite(tempfile::TempDir),
}

impl Database {
    pub fn postgres() -> Self {
        Self::of(Kind::Postgres(TestDatabase::create()))
    }

    pub fn sqlite() -> Self {
        Self::of(Kind::Sqlite(tempfile::tempdir().unwrap()))
    }

    /// Another database of the same kind.
    pub fn another(&self) -> Self {
        match self.kind {
            Kind::Postgres(_) => Self::postgres(),
            Kind::Sqlite(_) => Self::sqlite(),
        }
    }

    fn of(kind: Kind) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("test-{}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000)));
        Self { kind, name, clock, worker: Arc::default() }
    }

    pub fn url(&self) -> DatabaseUrl {
        match &self.kind {
            Kind::Postgres(_) => self.postgres_url().parse().unwrap(),
            Kind::Sqlite(_) => format!("sqlite://{}", self.file().display()).parse().unwrap(),
        }
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.kind, Kind::Postgres(_))
    }

    /// The URL for a connection that bypasses the store. All connections of this test have the same
    /// application name, and no other test has it.
    pub fn postgres_url(&self) -> String {
        match &self.kind {
            Kind::Postgres(database) => {
                format!("{}&application_name={}", database.url(), self.name)
            }
            Kind::Sqlite(_) => panic!("this test runs on PostgreSQL only"),
        }
    }

    /// The file for a connection that bypasses the store.
    pub fn file(&self) -> PathBuf {
        match &self.kind {
            Kind::Postgres(_) => panic!("this test runs on SQLite only"),
            Kind::Sqlite(dir) => dir.path().join("batches.db"),
        }
    }

    /// Opens the store, like a starting process.
    pub fn open(&self) -> TestStore {
        self.open_with(self.options())
    }

    pub fn open_with(&self, options: StoreOptions) -> TestStore {
        let store = Store::open(&self.url(), options).unwrap();
        TestStore { store, worker: Arc::clone(&self.worker), own_worker: Arc::default() }
    }

    /// Opens the store like an operator's command, which does not have the settings of the server.
    pub fn open_for_command(&self) -> TestStore {
        let store = Store::open_for_command(&self.url(), self.options()).unwrap();
        TestStore { store, worker: Arc::clone(&self.worker), own_worker: Arc::default() }
    }

    /// Opens the store of a restored database.
    pub fn restored(&self) -> Store {
        Store::open_restored(&self.url(), self.options()).unwrap()
    }

    pub fn options(&self) -> StoreOptions {
        StoreOptions {
            connections: 4,
            lock_timeout: Duration::from_secs(10),
            clock: DatabaseClock::simulated(self.clock.clone()),
            ..StoreOptions::default()
        }
    }

    /// A namespace name that no other test uses, because on PostgreSQL all tests share one database.
    pub fn namespace_name(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Runs SQL on a connection that bypasses the store.
    pub fn execute(&self, sql: &str) -> diesel::QueryResult<()> {
        self.execute_each(&[sql]).remove(0)
    }

    /// Runs each text of SQL, all on one connection that bypasses the store.
    pub fn execute_each(&self, sql: &[impl AsRef<str>]) -> Vec<diesel::QueryResult<()>> {
        match &self.kind {
            Kind::Postgres(_) => {
                let mut server = PgConnection::establish(&self.postgres_url()).unwrap();
                sql.iter().map(|sql| server.batch_execute(sql.as_ref())).collect()
            }
            Kind::Sqlite(_) => {
                let mut file = SqliteConnection::establish(self.file().to_str().unwrap()).unwrap();
                file.batch_execute("pragma foreign_keys = on").unwrap();
                sql.iter().map(|sql| file.batch_execute(sql.as_ref())).collect()
            }
        }
    }

    /// Runs a query that returns one row with one column named `number`.
    pub fn number(&self, sql: &str) -> i64 {
        #[derive(QueryableByName)]
        struct Answer {
            #[diesel(sql_type = diesel::sql_types::BigInt)]
            number: i64,
        }
        let answer: Answer = match &self.kind {
            Kind::Postgres(_) => {
                let mut server = PgConnection::establish(&self.postgres_url()).unwrap();
                sql_query(sql).get_result(&mut server).unwrap()
            }
            Kind::Sqlite(_) => {
                let mut file = SqliteConnection::establish(self.file().to_str().unwrap()).unwrap();
                sql_query(sql).get_result(&mut file).unwrap()
            }
        };
        answer.number
    }

    pub fn later(&self, seconds: u64) -> Timestamp {
        self.clock.advance(Duration::from_secs(seconds));
        self.now()
    }

    pub fn now(&self) -> Timestamp {
        grid_batch_core::Clock::now(&*self.clock)
    }
}

pub fn service(name: &str) -> ServiceId {
    name.parse().unwrap()
}

/// The id that starts with `number` and is otherwise zero. The change that a subscriber is called with, and its
/// outcome.
pub fn change_of(entry: Recorded<'_>) -> (Change, ChangeOutcome) {
    match entry {
        Recorded::Change { change, state, next_waits } => {
            (change.clone(), ChangeOutcome::Applied { state, next_waits })
        }
        Recorded::NotApplied { change, outcome } => (change.clone(), outcome),
        other => panic!("not a change: {other:?}"),
    }
}

pub fn id(number: u64) -> ItemId {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    ItemId::from_bytes(bytes)
}

/// A batch with two transactions and unique bytes.
pub fn batch(service_name: &str, number: u64) -> NewBatch {
    NewBatch {
        service_id: service(service_name),
        batch_id: id(number),
        signer: None,
        transaction_ids: [1_000_000, 2_000_000].map(|n| id(number.wrapping_add(n))).to_vec(),
        serialized_batch: format!("the bytes of {number}").into_bytes(),
        declared_access: None,
        label: None,
        client: None,
        declared_new: false,
        deadline: None,
        trace: None,
    }
}

/// A store, and an instance that claims each service of its database as soon as a test takes or reads a batch of the
/// service. All stores of one database share the instance, each with its own rules.
#[derive(Clone)]
pub struct TestStore {
    store: Store,
    /// The instance with the first store that used it.
    worker: Arc<OnceLock<ClaimStore>>,
    own_worker: Arc<OnceLock<ClaimStore>>,
}

impl Deref for TestStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl TestStore {
    /// The instance that works on the services of the database.
    pub fn worker(&self) -> &ClaimStore {
        let hours = |hours: u64| Duration::from_secs(hours * 60 * 60);
        self.own_worker.get_or_init(|| {
            let registered = self.worker.get_or_init(|| {
                let options = ClaimOptions {
                    idle_expiry: hours(10),
                    full_expiry: hours(20),
                    ..ClaimOptions::default()
                };
                ClaimStore::register(self.store.clone(), options).unwrap()
            });
            registered.with_store(self.store.clone())
        })
    }

    pub fn into_store(self) -> Store {
        self.store
    }

    /// The instance that works on the services of the database, after it has claimed all of them.
    pub fn worker_of_all(&self) -> &ClaimStore {
        self.worker().take(usize::MAX).unwrap();
        self.worker()
    }

    /// A monitor of all services.
    pub fn monitor(&self) -> MonitorStore {
        MonitorStore::new(self.worker_of_all().clone(), |_: Recorded<'_>| ())
    }

    pub fn take_next(&self, services: &[ServiceId]) -> BatchResult<Vec<TakenBatch>> {
        self.worker().take_services(services)?;
        Ok(self.worker().take_next(services)?)
    }

    pub fn give_back(&self, batches: &[TakenBatch]) -> BatchResult<()> {
        self.worker().give_back(batches)
    }

    pub fn ready_services(
        &self,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<ServiceId>> {
        self.worker_of_all().ready_services(after, limit)
    }

    pub fn found_at_ledger(&self, transactions: &[ItemId]) -> BatchResult<Vec<ServiceId>> {
        self.worker().found_at_ledger(transactions)
    }

    pub fn absent_at_ledger(&self, transactions: &[ItemId]) -> BatchResult<EndedDependents> {
        self.worker().absent_at_ledger(transactions)
    }

    pub fn hold_missing(&self, limit: Duration) -> BatchResult<usize> {
        self.worker().hold_missing(limit)
    }

    pub fn recover(&self) -> BatchResult<usize> {
        let worker = self.worker_of_all();
        Ok(worker.recover(&worker.with_submitter()?)?.len())
    }

    pub fn due(
        &self,
        now: Timestamp,
        pace: PollPace,
        limit: usize,
    ) -> BatchResult<Vec<PendingBatch>> {
        self.monitor().get_due_batch_ids(now, pace, limit).map(Option::unwrap)
    }

    pub fn pending_of(
        &self,
        services: &[ServiceId],
        limit: usize,
    ) -> BatchResult<Vec<PendingBatch>> {
        let names: Vec<String> = services.iter().map(ToString::to_string).collect();
        self.monitor().get_pending_batch_ids_of(&names, limit).map(Option::unwrap)
    }

    pub fn mark_checked(&self, batches: &[PendingBatch]) -> BatchResult<()> {
        self.monitor().mark_checked(batches)
    }

    /// Takes the next batch of each of these services, in the order of their names.
    pub fn take(&self, services: &[&str]) -> Vec<TakenBatch> {
        let services: Vec<ServiceId> = services.iter().map(|name| service(name)).collect();
        let mut taken = self.take_next(&services).unwrap();
        taken.sort_by(|a, b| a.service_id.cmp(&b.service_id));
        taken
    }

    pub fn take_one(&self, service: &str) -> TakenBatch {
        let [taken] = self.take(&[service]).try_into().unwrap();
        taken
    }

    /// Takes and commits the next batch of a service.
    pub fn commit_next(&self, service: &str) -> ItemId {
        let taken = self.take_one(service);
        self.outcome(&taken, Outcome::Accepted);
        let done = self.status(&taken, LedgerStatus::Committed);
        assert!(matches!(done, ChangeOutcome::Applied { .. }), "{done:?}");
        taken.batch_id
    }
}

/// Shortcuts for what most tests do with a store.
pub trait StoreExt {
    fn add_all(&self, batches: &[NewBatch]);
    fn one(&self, service: &str, number: u64) -> StoredBatch;
    fn record_one(&self, change: Change) -> ChangeOutcome;
    fn outcome(&self, taken: &TakenBatch, outcome: Outcome) -> ChangeOutcome;
    fn status(&self, taken: &TakenBatch, status: LedgerStatus) -> ChangeOutcome;
    fn evidence(&self, taken: &TakenBatch, evidence: Evidence) -> ChangeOutcome;
    fn hold(&self, taken: &TakenBatch, reason: &str) -> ChangeOutcome;
    fn remove_in_steps(&self, before: Timestamp, step: usize) -> usize;
}

impl StoreExt for Store {
    /// Adds batches that are not stored yet.
    fn add_all(&self, batches: &[NewBatch]) {
        let answers = self.add(&[batches]).unwrap();
        assert_eq!(answers, [Ok(vec![AddOutcome::Stored; batches.len()])]);
    }

    fn one(&self, name: &str, number: u64) -> StoredBatch {
        self.details(&service(name), &id(number)).unwrap().unwrap().batch
    }

    fn record_one(&self, change: Change) -> ChangeOutcome {
        self.record(&[change]).unwrap()[0]
    }

    fn outcome(&self, taken: &TakenBatch, outcome: Outcome) -> ChangeOutcome {
        self.record_one(happened(taken, Event::Outcome { attempt: taken.attempt, outcome }))
    }

    fn status(&self, taken: &TakenBatch, status: LedgerStatus) -> ChangeOutcome {
        self.record_one(happened(taken, Event::status(status)))
    }

    fn evidence(&self, taken: &TakenBatch, evidence: Evidence) -> ChangeOutcome {
        self.record_one(happened(taken, Event::Evidence { attempt: taken.attempt, evidence }))
    }

    /// Holds a batch for which the evidence was inconclusive.
    fn hold(&self, taken: &TakenBatch, reason: &str) -> ChangeOutcome {
        let nothing = Event::Evidence { attempt: taken.attempt, evidence: Evidence::Inconclusive };
        self.record_one(Change { hold: Some(reason.to_owned()), ..happened(taken, nothing) })
    }

    /// Removes ended batches step by step until all were examined.
    fn remove_in_steps(&self, before: Timestamp, step: usize) -> usize {
        self.remove_all_ended(before, step, || true).unwrap().batches
    }
}

/// The change that an event makes to a batch that was taken.
pub fn happened(taken: &TakenBatch, event: Event) -> Change {
    Change {
        epoch: Some(taken.epoch),
        ..Change::new(taken.service_id.clone(), taken.batch_id, event)
    }
}

/// Runs `count` cases of a property, and prints the seed that repeats them.
pub fn cases(count: u32) -> TestRunner {
    let seed = match Config::default().rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().build_hasher().finish(),
    };
    println!("PROPTEST_RNG_SEED={seed} runs the same cases again");
    TestRunner::new(Config {
        cases: count,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    })
}

/// Waits until a statement of that name is blocked by a lock.
pub fn wait_until_blocked(watcher: &mut PgConnection, statement: &str) {
    #[derive(QueryableByName)]
    struct Blocked {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        count: i64,
    }
    let sql = format!(
        "select count(*) as count from pg_stat_activity
         where wait_event_type = 'Lock' and query like '-- {statement}%'
             and application_name = current_setting('application_name')"
    );
    let started = Instant::now();
    while sql_query(&sql).get_result::<Blocked>(watcher).unwrap().count == 0 {
        assert!(started.elapsed().as_secs() < 30, "{statement} was never blocked");
        thread::yield_now();
    }
}

/// Runs each of these tests on both databases.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod postgres {
            $(#[test] fn $test() { super::$test(&crate::fixture::Database::postgres()); })*
        }
        mod sqlite {
            $(#[test] fn $test() { super::$test(&crate::fixture::Database::sqlite()); })*
        }
    };
}
pub(crate) use on_both;
