use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use diesel::{
    ConnectionError,
    r2d2::{HandleError, ManageConnection, Pool, PooledConnection, R2D2Connection},
};
use grid_batch_core::queries::PoolConnections;
use grid_batch_support::ErrorChain;
use log::warn;
use scheduled_thread_pool::ScheduledThreadPool;

use super::{
    Connection, Dialect, StoreError,
    connection::{Held, Session, on_either},
    dialect::SessionLimits,
    file_lock::OpenFile,
    namespace::Namespace,
    program_pool::{self, ProgramPool},
    url::DatabaseUrl,
};

/// One pool of connections for writing and one for reading. They are the same pool on PostgreSQL, and if a program
/// lends its own.
#[derive(Clone)]
pub(crate) struct Pools {
    write: SessionPool,
    read: SessionPool,
    url: DatabaseUrl,
    namespace: Namespace,
    limits: SessionLimits,
    file: Option<OpenFile>,
    check: Arc<OnceLock<Box<ConnectionCheck>>>,
    /// Distinguishes these pools from others of the process.
    number: u64,
}

#[derive(Clone)]
enum SessionPool {
    Own(Pool<Manager>),
    Lent(ProgramPool),
}

/// Called with each new connection before anything else uses it.
pub(crate) type ConnectionCheck = dyn Fn(&mut Connection) -> Result<(), StoreError> + Send + Sync;

/// The next number of [`Pools`].
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

impl Pools {
    pub(crate) fn open(
        url: &DatabaseUrl,
        connections: u32,
        limits: SessionLimits,
        namespace: &Namespace,
    ) -> Result<Self, StoreError> {
        // r2d2 does not report why it cannot connect, so the first connection is opened without it.
        let failed = |source| StoreError::Connect { url: url.to_string(), source };
        let mut first = Connection::establish(url, limits, namespace).map_err(failed)?;
        first.expect_own_session(url, limits)?;
        first.configure(url.access(), limits).map_err(failed)?;
        first.check_journal_mode(url)?;
        let dialect = first.dialect();
        let file = OpenFile::of(url);
        let check: Arc<OnceLock<Box<ConnectionCheck>>> = Arc::default();
        let opener = Arc::new(
            ScheduledThreadPool::builder().num_threads(1).thread_name_pattern("database").build(),
        );
        let pool = |size: u32, settings: Option<&'static str>| {
            let pool = Pool::builder()
                .thread_pool(Arc::clone(&opener))
                .max_size(size)
                .min_idle(Some(0))
                .error_handler(Box::new(LogFailures))
                .connection_timeout(limits.lock.min(CONNECTION_WAIT))
                .build(Manager {
                    url: url.clone(),
                    namespace: namespace.clone(),
                    limits,
                    settings,
                    file: file.clone(),
                    check: Arc::clone(&check),
                });
            pool.map(SessionPool::Own)
                .map_err(|source| StoreError::Unavailable { source: Box::new(source) })
        };
        let writers = dialect.writers(connections);
        let write = pool(writers, None)?;
        let read = if writers == connections {
            write.clone()
        } else {
            pool(connections, dialect.small_cache())?
        };
        let number = NEXT_NUMBER.fetch_add(1, Relaxed);
        Ok(Self {
            write,
            read,
            url: url.clone(),
            namespace: namespace.clone(),
            limits,
            file,
            check,
            number,
        })
    }

    /// Uses the connections of a program.
    pub(crate) fn over(
        pool: ProgramPool,
        limits: SessionLimits,
        namespace: &Namespace,
    ) -> Result<Self, StoreError> {
        let (mut first, _) = pool.get(limits.lock, namespace)?;
        program_pool::check_settings(&mut first, limits)?;
        let url = program_pool::url_of(&mut first)?;
        Ok(Self {
            write: SessionPool::Lent(pool.clone()),
            read: SessionPool::Lent(pool),
            file: OpenFile::of(&url),
            url,
            namespace: namespace.clone(),
            limits,
            check: Arc::default(),
            number: NEXT_NUMBER.fetch_add(1, Relaxed),
        })
    }

    /// Checks each connection that is opened from now on.
    pub(crate) fn check_new_connections(
        &self,
        check: impl Fn(&mut Connection) -> Result<(), StoreError> + Send + Sync + 'static,
    ) {
        // There is only one check per store.
        let _ = self.check.set(Box::new(check));
    }

    /// Opens a connection for exclusive use. If a program lends its pool, the connection is taken from the pool.
    pub(crate) fn connect(&self) -> Result<Connection<'static>, StoreError> {
        match &self.write {
            SessionPool::Own(_) => {
                let failed = |source| StoreError::Connect { url: self.url.to_string(), source };
                Connection::open(&self.url, self.limits, &self.namespace).map_err(failed)
            }
            SessionPool::Lent(pool) => self.get_lent(pool),
        }
    }

    /// Whether the connections belong to a program.
    pub(crate) fn are_lent(&self) -> bool {
        matches!(self.write, SessionPool::Lent(_))
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.url.dialect()
    }

    pub(crate) fn url(&self) -> &DatabaseUrl {
        &self.url
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The connections of each pool.
    pub(crate) fn connections(&self) -> Vec<PoolConnections> {
        let of = |name, pool: &SessionPool| {
            let (state, most) = match pool {
                SessionPool::Own(pool) => (pool.state(), pool.max_size()),
                SessionPool::Lent(pool) => pool.state(),
            };
            PoolConnections {
                pool: name,
                open: state.connections,
                idle: state.idle_connections,
                most,
            }
        };
        if self.are_lent() || self.dialect().writers(u32::MAX) > 1 {
            vec![of("all", &self.write)]
        } else {
            vec![of("write", &self.write), of("read", &self.read)]
        }
    }

    /// A connection for writing. Fails if the file of the database was replaced, because writes to the open file would
    /// be lost.
    pub(crate) fn write(&self) -> Result<PooledGuard, StoreError> {
        self.file.as_ref().map_or(Ok(()), OpenFile::check)?;
        self.get(&self.write)
    }

    pub(crate) fn read(&self) -> Result<PooledGuard, StoreError> {
        self.get(&self.read)
    }

    fn get(&self, pool: &SessionPool) -> Result<PooledGuard, StoreError> {
        Ok(match pool {
            SessionPool::Own(pool) => Box::new(get(pool, self.limits.lock)?),
            SessionPool::Lent(pool) => Box::new(Box::new(self.get_lent(pool)?)),
        })
    }

    /// A connection of the program. A new one is checked first.
    fn get_lent(&self, pool: &ProgramPool) -> Result<Connection<'static>, StoreError> {
        let (mut connection, checked) = pool.get(self.limits.lock, &self.namespace)?;
        if !checked.contains(self.number) {
            program_pool::check_settings(&mut connection, self.limits)?;
            self.file.as_ref().map_or(Ok(()), OpenFile::check)?;
            if let Some(check) = self.check.get() {
                check(&mut connection)?;
            }
            checked.insert(self.number);
        }
        Ok(connection)
    }
}

/// A pooled connection, which is returned to its pool when this is dropped.
pub(crate) type PooledGuard = Held<'static, Connection<'static>>;

fn failed_check(error: StoreError) -> diesel::r2d2::Error {
    let message = ErrorChain(&error).to_string();
    diesel::r2d2::Error::ConnectionError(ConnectionError::BadConnection(message))
}

/// Gets a connection within this limit.
pub(super) fn get<M: ManageConnection>(
    pool: &Pool<M>,
    limit: Duration,
) -> Result<PooledConnection<M>, StoreError> {
    let started = Instant::now();
    loop {
        let left = limit.saturating_sub(started.elapsed());
        match pool.get_timeout(left.min(CONNECTION_WAIT)) {
            Err(source) if started.elapsed() >= limit => {
                return Err(StoreError::Unavailable { source: Box::new(source) });
            }
            Err(_) => {}
            Ok(connection) => return Ok(connection),
        }
    }
}

/// How long the pool waits for a connection before it opens one to replace those that broke meanwhile. It pauses for up
/// to half of this between attempts to open one.
const CONNECTION_WAIT: Duration = Duration::from_millis(500);

/// Logs why no connection could be opened. The pool itself would log an error each time, which nothing sums up.
#[derive(Debug)]
struct LogFailures;

impl HandleError<diesel::r2d2::Error> for LogFailures {
    fn handle_error(&self, error: diesel::r2d2::Error) {
        warn!(error:%; "a connection to the database failed");
    }
}

/// Opens connections for the pools.
pub(crate) struct Manager {
    url: DatabaseUrl,
    namespace: Namespace,
    limits: SessionLimits,
    /// What is set beside the settings of all connections.
    settings: Option<&'static str>,
    file: Option<OpenFile>,
    check: Arc<OnceLock<Box<ConnectionCheck>>>,
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A connection that was returned longer ago is tested by a statement before it is used again.
const TEST_AFTER: Duration = Duration::from_secs(1);

impl Connection<'_> {
    /// Whether the server has closed the connection, as far as its socket shows.
    fn is_closed(&mut self) -> bool {
        match &mut self.session {
            // The first pass reads what has arrived; the second one notices the end of the connection.
            #[cfg(feature = "postgres")]
            Session::Postgres(inner) => {
                (0..2).any(|_| inner.notifications_iter().any(|read| read.is_err()))
            }
            #[cfg(feature = "sqlite")]
            Session::Sqlite(_) => false,
        }
    }
}

impl ManageConnection for Manager {
    type Connection = Connection<'static>;
    type Error = diesel::r2d2::Error;

    fn connect(&self) -> Result<Connection<'static>, Self::Error> {
        let mut connection = Connection::open(&self.url, self.limits, &self.namespace)
            .map_err(diesel::r2d2::Error::ConnectionError)?;
        let set = self.settings.map_or(Ok(()), |settings| connection.batch_execute(settings));
        set.map_err(diesel::r2d2::Error::QueryError)?;
        self.file.as_ref().map_or(Ok(()), OpenFile::check).map_err(failed_check)?;
        if let Some(check) = self.check.get() {
            check(&mut connection).map_err(failed_check)?;
        }
        connection.returned_at = Some(Instant::now());
        Ok(connection)
    }

    fn is_valid(&self, connection: &mut Connection) -> Result<(), Self::Error> {
        let is_recent = connection.returned_at.is_some_and(|at| at.elapsed() < TEST_AFTER);
        if is_recent && !connection.is_closed() {
            return Ok(());
        }
        on_either!(connection, inner => R2D2Connection::ping(inner))
            .map_err(diesel::r2d2::Error::QueryError)
    }

    /// The pool calls it when a connection is returned.
    fn has_broken(&self, connection: &mut Connection) -> bool {
        connection.returned_at = Some(Instant::now());
        std::thread::panicking()
            || on_either!(connection, inner => R2D2Connection::is_broken(inner))
    }
}

#[cfg(test)]
#[cfg(feature = "postgres")]
mod tests {
    use diesel::{RunQueryDsl, sql_query};
    use grid_batch_test_postgres::TestDatabase;

    use super::*;
    use crate::{StoreOptions, sql::columns::Tuple};

    const LIMIT: Duration = Duration::from_secs(20);

    fn pools(database: &TestDatabase) -> Pools {
        let options = StoreOptions { lock_timeout: LIMIT, ..StoreOptions::default() };
        Pools::open(
            &database.url().parse().unwrap(),
            1,
            options.session_limits(),
            &Namespace::default(),
        )
        .unwrap()
    }

    /// Ends the session of a connection, and waits until the connection has ended.
    fn close(session: &mut PooledGuard, other: &mut Connection) {
        let pid = sql_query("select pg_backend_pid() as pid");
        let pid: Tuple<(i32,)> = on_either!(session, inner => pid.get_result(inner)).unwrap();
        other.batch_execute(&format!("select pg_terminate_backend({})", pid.0.0)).unwrap();
        let started = Instant::now();
        while !session.is_closed() {
            assert!(started.elapsed() < LIMIT, "the end of the connection is not recognized");
        }
    }

    #[test]
    fn end_of_a_connection_is_recognized_without_a_statement() {
        let database = TestDatabase::create();
        let pools = pools(&database);
        let mut session = pools.write().unwrap();
        assert!(!session.is_closed());
        close(&mut session, &mut pools.connect().unwrap());
    }

    #[test]
    fn broken_connection_is_replaced_for_a_waiting_caller() {
        let database = TestDatabase::create();
        let pools = pools(&database);
        let mut session = pools.write().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let started = Instant::now();
                pools.write().map(|_| started.elapsed())
            });
            close(&mut session, &mut pools.connect().unwrap());
            assert!(session.batch_execute("select 1").is_err());
            drop(session);
            assert!(waiting.join().unwrap().unwrap() < LIMIT / 2);
        });
    }
}
