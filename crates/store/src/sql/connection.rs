use std::{
    ops::DerefMut,
    thread,
    time::{Duration, Instant},
};

#[cfg(feature = "postgres")]
use diesel::pg::PgConnection;
#[cfg(feature = "sqlite")]
use diesel::sqlite::SqliteConnection;
use diesel::{
    Connection as _, ConnectionError, RunQueryDsl,
    connection::{AnsiTransactionManager, SimpleConnection, TransactionManager},
    deserialize::QueryableByName,
};
use log::warn;

#[cfg(feature = "sqlite")]
use super::sqlite_file;
use super::{
    StoreError,
    columns::Tuple,
    dialect::{Dialect, Failure, SessionLimits, classify},
    namespace::Namespace,
    statement::{Rows, Statement},
    url::{Access, DatabaseUrl, Kind},
};
#[cfg(feature = "postgres")]
use super::{network::with_network_limits, shared_sessions::expect_own_session};

/// Evaluates an expression with the connection of either database.
macro_rules! on_either {
    ($connection:expr, $inner:ident => $body:expr) => {
        match &mut $connection.session {
            #[cfg(feature = "postgres")]
            $crate::sql::connection::Session::Postgres(inner) => {
                let $inner: &mut diesel::pg::PgConnection = &mut *inner;
                $body
            }
            #[cfg(feature = "sqlite")]
            $crate::sql::connection::Session::Sqlite(inner) => {
                let $inner: &mut diesel::sqlite::SqliteConnection = &mut *inner;
                $body
            }
        }
    };
}
pub(crate) use on_either;

/// A connection to a database. The store uses the tables in its namespace.
pub(crate) struct Connection<'c> {
    pub(crate) session: Session<'c>,
    namespace: Namespace,
    /// When it was returned to its pool, if the pool belongs to the store.
    pub(super) returned_at: Option<Instant>,
}

/// A session of either database.
pub(crate) enum Session<'c> {
    #[cfg(feature = "postgres")]
    Postgres(Held<'c, PgConnection>),
    #[cfg(feature = "sqlite")]
    Sqlite(Held<'c, SqliteConnection>),
}

/// Owns or borrows the value, or returns it to its pool when it is dropped.
pub(crate) type Held<'c, T> = Box<dyn DerefMut<Target = T> + Send + 'c>;

/// A row that can be read from both databases.
#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub(crate) trait Row:
    QueryableByName<diesel::pg::Pg> + QueryableByName<diesel::sqlite::Sqlite> + 'static
{
}
#[cfg(all(feature = "postgres", feature = "sqlite"))]
impl<R> Row for R where
    R: QueryableByName<diesel::pg::Pg> + QueryableByName<diesel::sqlite::Sqlite> + 'static
{
}
#[cfg(all(feature = "postgres", not(feature = "sqlite")))]
pub(crate) trait Row: QueryableByName<diesel::pg::Pg> + 'static {}
#[cfg(all(feature = "postgres", not(feature = "sqlite")))]
impl<R: QueryableByName<diesel::pg::Pg> + 'static> Row for R {}
#[cfg(all(feature = "sqlite", not(feature = "postgres")))]
pub(crate) trait Row: QueryableByName<diesel::sqlite::Sqlite> + 'static {}
#[cfg(all(feature = "sqlite", not(feature = "postgres")))]
impl<R: QueryableByName<diesel::sqlite::Sqlite> + 'static> Row for R {}

impl<'c> Connection<'c> {
    pub(crate) fn new(session: Session<'c>, namespace: Namespace) -> Self {
        Self { session, namespace, returned_at: None }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match &self.session {
            #[cfg(feature = "postgres")]
            Session::Postgres(_) => Dialect::Postgres,
            #[cfg(feature = "sqlite")]
            Session::Sqlite(_) => Dialect::Sqlite,
        }
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    pub(crate) fn open(
        url: &DatabaseUrl,
        limits: SessionLimits,
        namespace: &Namespace,
    ) -> Result<Self, ConnectionError> {
        let mut connection = Self::establish(url, limits, namespace)?;
        connection.configure(url.access(), limits)?;
        Ok(connection)
    }

    /// Connects without changing settings of the session.
    pub(super) fn establish(
        database: &DatabaseUrl,
        limits: SessionLimits,
        namespace: &Namespace,
    ) -> Result<Self, ConnectionError> {
        let session = match database.kind() {
            #[cfg(feature = "postgres")]
            Kind::Postgres(url) => {
                let url = with_network_limits(url, limits.idle_transaction);
                Session::Postgres(Box::new(Box::new(PgConnection::establish(&url)?)))
            }
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(path) => {
                let path = path.to_str().ok_or_else(|| {
                    ConnectionError::InvalidConnectionUrl("the path is not UTF-8".to_owned())
                })?;
                Session::Sqlite(Box::new(Box::new(sqlite_file::open(path, database.access())?)))
            }
        };
        Ok(Self::new(session, namespace.clone()))
    }

    /// Fails if a connection pooler shares sessions among connections to this URL.
    pub(super) fn expect_own_session(
        &mut self,
        url: &DatabaseUrl,
        limits: SessionLimits,
    ) -> Result<(), StoreError> {
        match (&mut self.session, url.kind()) {
            #[cfg(feature = "postgres")]
            (Session::Postgres(inner), Kind::Postgres(url)) => {
                expect_own_session(inner, &with_network_limits(url, limits.idle_transaction))
            }
            #[cfg(feature = "sqlite")]
            _ => Ok(()),
        }
    }

    /// Applies the settings of a connection. When several connections open a new SQLite file at
    /// once, SQLite does not wait for the change of the journal mode, so this retries.
    pub(super) fn configure(
        &mut self,
        access: Access,
        limits: SessionLimits,
    ) -> Result<(), ConnectionError> {
        let settings = match access {
            Access::Read => self.dialect().read_settings(limits),
            Access::Create | Access::Existing => self.dialect().settings(limits),
        };
        let deadline = Instant::now().checked_add(limits.lock);
        loop {
            match self.batch_execute(&settings) {
                Err(error)
                    if classify(&error) == Some(Failure::Locked)
                        && deadline.is_none_or(|deadline| Instant::now() < deadline) =>
                {
                    thread::sleep(Duration::from_millis(2));
                }
                done => return done.map_err(ConnectionError::CouldntSetupConfiguration),
            }
        }
    }

    /// Checks the journal mode, because SQLite reports only on request that a file system does not support a
    /// write-ahead log.
    pub(super) fn check_journal_mode(&mut self, url: &DatabaseUrl) -> Result<(), StoreError> {
        if url.access() == Access::Read {
            return Ok(());
        }
        let Some((query, expected)) = self.dialect().journal_mode_query() else { return Ok(()) };
        let modes: Vec<String> = self.load_column(&Statement::new(query))?;
        match modes.first() {
            Some(mode) if mode == expected => Ok(()),
            _ => Err(StoreError::NoWriteAheadLog { url: url.to_string() }),
        }
    }

    pub(crate) fn batch_execute(&mut self, sql: &str) -> diesel::QueryResult<()> {
        let sql = self.namespace.qualify(self.dialect(), sql);
        on_either!(self, inner => inner.batch_execute(&sql))
    }

    /// Takes the notifications that have arrived on the channels that this connection listens to.
    pub(crate) fn notifications(&mut self) -> Result<Vec<String>, StoreError> {
        match &mut self.session {
            #[cfg(feature = "postgres")]
            Session::Postgres(inner) => {
                let texts =
                    inner.notifications_iter().map(|notification| Ok(notification?.payload));
                Ok(texts.collect::<diesel::QueryResult<_>>()?)
            }
            #[cfg(feature = "sqlite")]
            Session::Sqlite(_) => Ok(Vec::new()),
        }
    }

    /// Runs a statement and returns its rows.
    pub(crate) fn load<R: Row>(&mut self, statement: &Statement<'_>) -> Result<Vec<R>, StoreError> {
        #[cfg(test)]
        crate::plans::record(self, statement)?;
        let sql = self.namespace.qualify(self.dialect(), statement.template());
        match &mut self.session {
            #[cfg(feature = "postgres")]
            Session::Postgres(inner) => {
                if statement.has_no_rows() {
                    return Ok(Vec::new());
                }
                Ok(RunQueryDsl::load(statement.whole(&sql), &mut ***inner)?)
            }
            #[cfg(feature = "sqlite")]
            Session::Sqlite(inner) => {
                let mut found = Vec::new();
                for chunk in statement.chunks(&sql) {
                    found.extend(RunQueryDsl::load::<R>(chunk, &mut ***inner)?);
                }
                Ok(found)
            }
        }
    }

    /// Runs a statement for a group of rows, and returns the rows that it finds or changes.
    pub(crate) fn load_rows<R: Row>(
        &mut self,
        sql: impl Into<String>,
        rows: Rows<'_>,
    ) -> Result<Vec<R>, StoreError> {
        self.load(&Statement::new(sql).rows(rows))
    }

    /// Runs a statement and returns its rows, which have up to three columns.
    pub(crate) fn load_tuples<T>(&mut self, statement: &Statement<'_>) -> Result<Vec<T>, StoreError>
    where
        Tuple<T>: Row,
    {
        Ok(self.load::<Tuple<T>>(statement)?.into_iter().map(|row| row.0).collect())
    }

    /// Runs a statement for a group of rows, and returns the rows that it finds or changes, which have up to three
    /// columns.
    pub(crate) fn load_row_tuples<T>(
        &mut self,
        sql: impl Into<String>,
        rows: Rows<'_>,
    ) -> Result<Vec<T>, StoreError>
    where
        Tuple<T>: Row,
    {
        self.load_tuples(&Statement::new(sql).rows(rows))
    }

    /// Runs a statement and returns its only column.
    pub(crate) fn load_column<T>(&mut self, statement: &Statement<'_>) -> Result<Vec<T>, StoreError>
    where
        Tuple<(T,)>: Row,
    {
        Ok(self.load_tuples::<(T,)>(statement)?.into_iter().map(|row| row.0).collect())
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub(crate) fn execute(&mut self, statement: &Statement<'_>) -> Result<usize, StoreError> {
        #[cfg(test)]
        crate::plans::record(self, statement)?;
        let sql = self.namespace.qualify(self.dialect(), statement.template());
        match &mut self.session {
            #[cfg(feature = "postgres")]
            Session::Postgres(inner) => {
                if statement.has_no_rows() {
                    return Ok(0);
                }
                Ok(RunQueryDsl::execute(statement.whole(&sql), &mut ***inner)?)
            }
            #[cfg(feature = "sqlite")]
            Session::Sqlite(inner) => {
                let mut touched = 0;
                for chunk in statement.chunks(&sql) {
                    touched += RunQueryDsl::execute(chunk, &mut ***inner)?;
                }
                Ok(touched)
            }
        }
    }

    /// Runs a statement for a group of rows.
    pub(crate) fn execute_rows(
        &mut self,
        sql: impl Into<String>,
        rows: Rows<'_>,
    ) -> Result<(), StoreError> {
        self.execute(&Statement::new(sql).rows(rows)).map(drop)
    }

    /// Runs `work` in one writing transaction, which is rolled back if it fails. On a pooled connection, Diesel's own
    /// `transaction` would begin another kind of transaction, in which SQLite may refuse to write.
    pub(crate) fn write_transaction<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let begin = self.dialect().begin();
        self.in_transaction(begin, work)
    }

    /// Like [`write_transaction`](Self::write_transaction), but waits for each lock at most this long.
    pub(crate) fn transaction_with_lock_limit<T, E: From<StoreError>>(
        &mut self,
        lock_limit: Duration,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let begin = self.dialect().begin_with_lock_limit(lock_limit);
        self.in_transaction(&begin, work)
    }

    /// Runs `work` in a read-only transaction that sees the database at one moment.
    pub(crate) fn snapshot<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let begin = self.dialect().begin_snapshot();
        self.in_transaction(begin, work)
    }

    fn in_transaction<T, E: From<StoreError>>(
        &mut self,
        begin: &str,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        on_either!(self, inner => AnsiTransactionManager::begin_transaction_sql(inner, begin))
            .map_err(StoreError::from)?;
        match work(self) {
            Ok(value) => {
                on_either!(self, inner => AnsiTransactionManager::commit_transaction(inner))
                    .map_err(StoreError::from)?;
                Ok(value)
            }
            Err(error) => {
                let rolled_back =
                    on_either!(self, inner => AnsiTransactionManager::rollback_transaction(inner));
                if let Err(second) = rolled_back {
                    // The caller gets the first error; the pool discards a broken connection.
                    warn!(error:% = second; "cannot roll back a transaction");
                }
                Err(error)
            }
        }
    }
}
