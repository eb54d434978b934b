use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use grid_batch_core::batches::{ClientId, SignerId};
use grid_batch_core::queries::PoolConnections;
use grid_batch_core::queue::{ListSize, SchedulingRules};
use grid_batch_core::{Clock, ServiceId, SystemClock, Timestamp};
use grid_batch_support::JobTrigger;
#[cfg(feature = "withdrawals")]
use grid_batch_withdrawals::PaymentLimits;

use super::{
    Dialect, Statement, StoreError,
    database_clock::{DatabaseClock, Reading},
    dialect::SessionLimits,
    event_sink::EventSink,
    file_lock::FileLock,
    intake_limits::IntakeLimits,
    last_seen::LastSeen,
    locked_services::{LockedService, LockedServices},
    migrations::{check_schema, expect_no_withdrawals, migrate},
    namespace::Namespace,
    open_counts::OpenCounts,
    pools::Pools,
    program_pool::ProgramPool,
    scheduler::{RulesOf, Scheduler, recorded_rules},
    unreadable_services::UnreadableServices,
    url::{Access, DatabaseUrl},
};
use crate::InstalledHooks;

/// A durable store of batches: what [`add`](grid_batch_core::batches::IntakeStore::add) has returned survives a crash.
///
/// A store can be shared and cloned; clones use the same connections. Its methods block.
#[derive(Clone)]
pub struct Store {
    pub(crate) pools: Pools,
    pub(crate) last_seen: Arc<LastSeen>,
    pub(crate) locked: Arc<LockedServices>,
    pub(crate) unreadable: Arc<UnreadableServices>,
    pub(crate) intake_limits: IntakeLimits,
    pub(crate) client_queues: Arc<OpenCounts<ClientId>>,
    /// The missing transactions that batches of signers depend on.
    pub(crate) missing_of_signers: Arc<OpenCounts<SignerId>>,
    /// The batches of services that miss transactions.
    pub(crate) incomplete_of_services: Arc<OpenCounts<ServiceId>>,
    /// The signer about whose missing transaction the ledger was last asked.
    pub(crate) last_signer: Arc<Mutex<Option<Vec<u8>>>>,
    #[cfg(feature = "withdrawals")]
    pub(crate) payment_limits: Arc<PaymentLimits>,
    pub(crate) scheduler: Arc<Scheduler>,
    /// Starts the job that adds the batches of lists.
    pub(crate) list_trigger: JobTrigger,
    /// Whether the ledger applies a batch again if it arrives again.
    pub(crate) applies_again: Arc<AtomicBool>,
    clock: DatabaseClock,
}

/// How a store uses its database.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Limit on the number of connections. On SQLite, these are for reading, and there is one more for writing.
    pub connections: u32,
    /// The longest wait for a free connection and for a lock; at most a day.
    pub lock_timeout: Duration,
    /// On PostgreSQL, the server ends a session that is idle in a transaction for this long, and both sides give up a
    /// connection that is cut off for this long. Locks of a frozen instance last only slightly longer, so it must be
    /// shorter than the idle expiry of claims.
    pub idle_transaction_timeout: Duration,
    /// The source of stored times. Components that compare the time with stored times must use a clone of it.
    pub clock: DatabaseClock,
    /// How much intake may store.
    pub intake_limits: IntakeLimits,
    /// How much may be scheduled from pools.
    #[cfg(feature = "withdrawals")]
    pub payment_limits: Arc<PaymentLimits>,
    /// How the batches of each service are scheduled.
    pub scheduling: Arc<SchedulingRules>,
    /// Whether each change is also written as an event.
    pub writes_events: bool,
    /// The namespace of the tables in a database that has other tables.
    pub namespace: Namespace,
}

impl Default for StoreOptions {
    fn default() -> Self {
        let clock = DatabaseClock::new(Arc::new(SystemClock));
        let intake_limits = IntakeLimits::default();
        Self {
            connections: 8,
            lock_timeout: Duration::from_secs(30),
            idle_transaction_timeout: Duration::from_secs(15),
            clock,
            intake_limits,
            #[cfg(feature = "withdrawals")]
            payment_limits: Arc::default(),
            scheduling: Arc::default(),
            writes_events: true,
            namespace: Namespace::default(),
        }
    }
}

impl StoreOptions {
    pub(crate) fn session_limits(&self) -> SessionLimits {
        SessionLimits {
            lock: self.lock_timeout.min(Duration::from_secs(24 * 60 * 60)),
            idle_transaction: self.idle_transaction_timeout,
        }
    }
}

impl Store {
    /// How many batches this process may send in one request. An adapter opens it.
    pub fn lists(&self) -> &ListSize {
        self.scheduler.lists()
    }

    /// Opens the database, and brings its schema up to date or only checks it, depending on the access. Does not check
    /// whether it was restored.
    pub(crate) fn connect(
        url: &DatabaseUrl,
        options: StoreOptions,
        rules: RulesOf,
    ) -> Result<Self, StoreError> {
        url.check_exists()?;
        let limits = options.session_limits();
        let pools = Pools::open(url, options.connections.max(1), limits, &options.namespace)?;
        Self::with_pools(pools, options, rules)
    }

    /// Uses the connections of a program whose database has the schema of this release.
    pub(crate) fn connect_over(
        pool: ProgramPool,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        let pools = Pools::over(pool, options.session_limits(), &options.namespace)?;
        Self::with_pools(pools, options, RulesOf::Options)
    }

    fn with_pools(pools: Pools, options: StoreOptions, rules: RulesOf) -> Result<Self, StoreError> {
        // This is read before the database, which therefore has at least this state.
        let last_seen = Arc::new(LastSeen::starting_with(FileLock::kept(pools.url())));
        let locked = Arc::default();
        let StoreOptions { clock, intake_limits, .. } = options;
        let mut scheduler = Scheduler::new(
            options.scheduling,
            EventSink::new(options.writes_events),
            Arc::new(InstalledHooks),
        );
        let url = pools.url();
        if url.access() != Access::Read && !cfg!(feature = "withdrawals") {
            expect_no_withdrawals(&mut *pools.read()?)?;
        }
        match url.access() {
            Access::Create => migrate(&mut *pools.write()?)?,
            Access::Existing | Access::Read => check_schema(&mut *pools.read()?, url)?,
        }
        if rules == RulesOf::Database {
            scheduler.set_recorded(recorded_rules(&mut *pools.read()?)?);
        }
        let store = Self {
            pools,
            last_seen,
            locked,
            unreadable: Arc::default(),
            intake_limits,
            client_queues: Arc::default(),
            missing_of_signers: Arc::default(),
            incomplete_of_services: Arc::default(),
            last_signer: Arc::default(),
            #[cfg(feature = "withdrawals")]
            payment_limits: options.payment_limits,
            scheduler: Arc::new(scheduler),
            list_trigger: JobTrigger::default(),
            applies_again: Arc::default(),
            clock,
        };
        store.measure_clock()?;
        Ok(store)
    }

    /// Whether the transactions of new batches are compared with those of removed batches.
    pub(crate) fn refuses_past_transactions(&self) -> bool {
        self.applies_again.load(Relaxed)
    }

    /// The database's clock, which gives the times that are stored.
    pub fn clock(&self) -> &DatabaseClock {
        &self.clock
    }

    /// The services with a row that other transactions keep locked, as far as this process has noticed. Their batches
    /// wait.
    pub fn locked_services(&self) -> Vec<LockedService> {
        self.locked.list()
    }

    /// Since when another transaction has kept a row of this service locked, if one does and this process has noticed
    /// it.
    pub fn locked_since(&self, service_id: &ServiceId) -> Option<Timestamp> {
        self.locked.since(service_id)
    }

    /// How many events this store has written since it was opened, including those of failed transactions.
    pub fn events_written(&self) -> u64 {
        self.scheduler.events().count()
    }

    /// The connections to the database, by pool.
    pub fn connections(&self) -> Vec<PoolConnections> {
        self.pools.connections()
    }

    /// Reads the database's clock, so that the times that are stored agree with it.
    pub(crate) fn measure_clock(&self) -> Result<(), StoreError> {
        if self.clock.is_simulated() {
            return Ok(());
        }
        let mut connection = self.pools.read()?;
        let before = self.clock.monotonic();
        let database = if self.dialect().has_own_clock() {
            let clock = self.dialect().clock();
            let statement = Statement::new(format!("-- read_clock\n select {clock} as time"));
            let times: Vec<i64> = connection.load_column(&statement)?;
            let missing = || StoreError::corrupt("the database's clock has no time");
            Timestamp::from_micros(*times.first().ok_or_else(missing)?)
        } else {
            self.clock.machine().now()
        };
        self.clock.follow(Reading { before, database, after: self.clock.monotonic() });
        Ok(())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.pools.dialect()
    }

    /// The channel of all instances that use the tables of this store. A notification for one instance names the instance
    /// and then services, one per line. A notification for all instances begins with a line that says what it reports
    /// and who sent it, followed by batches.
    pub(crate) fn notification_channel(&self) -> String {
        const CHANNEL: &str = "grid_batch_work";
        match self.pools.namespace().name() {
            Some(namespace) => format!("{CHANNEL}_{namespace}"),
            None => CHANNEL.to_owned(),
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("dialect", &self.dialect()).finish_non_exhaustive()
    }
}
