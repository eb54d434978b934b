use std::{
    thread,
    time::{Duration, Instant},
};

#[cfg(feature = "postgres")]
use diesel::pg::PgConnection;
use diesel::{
    Connection as _, ConnectionError, RunQueryDsl,
    connection::{AnsiTransactionManager, SimpleConnection, TransactionManager},
    deserialize::QueryableByName,
};
use log::warn;

pub(crate) use super::any_connection::AnyConnection as Connection;
#[cfg(feature = "sqlite")]
use super::sqlite_file;
use super::{
    StoreError,
    dialect::{Dialect, Failure, SessionLimits, classify},
    statement::Statement,
    url::{Access, DatabaseUrl, Kind},
};
#[cfg(feature = "postgres")]
use super::{network::with_network_limits, shared_sessions::expect_own_session};

/// Evaluates an expression with the connection of either database.
macro_rules! on_either {
    ($connection:expr, $inner:ident => $body:expr) => {
        match $connection {
            #[cfg(feature = "postgres")]
            Connection::Postgres($inner) => $body,
            #[cfg(feature = "sqlite")]
            Connection::Sqlite($inner) => $body,
        }
    };
}
pub(crate) use on_either;

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

impl Connection {
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Dialect::Postgres,
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => Dialect::Sqlite,
        }
    }

    pub(crate) fn open(url: &DatabaseUrl, limits: SessionLimits) -> Result<Self, ConnectionError> {
        let mut connection = Self::establish(url, limits)?;
        connection.configure(url.access(), limits)?;
        Ok(connection)
    }

    /// Connects without setting anything in the session.
    pub(super) fn establish(
        database: &DatabaseUrl,
        limits: SessionLimits,
    ) -> Result<Self, ConnectionError> {
        Ok(match database.kind() {
            #[cfg(feature = "postgres")]
            Kind::Postgres(url) => {
                let url = with_network_limits(url, limits.idle_transaction);
                Self::Postgres(PgConnection::establish(&url)?)
            }
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(path) => {
                let path = path.to_str().ok_or_else(|| {
                    ConnectionError::InvalidConnectionUrl("the path is not UTF-8".to_owned())
                })?;
                Self::Sqlite(sqlite_file::open(path, database.access())?)
            }
        })
    }

    /// Fails if a connection pooler shares sessions among connections to this URL.
    pub(super) fn expect_own_session(
        &mut self,
        url: &DatabaseUrl,
        limits: SessionLimits,
    ) -> Result<(), StoreError> {
        match (self, url.kind()) {
            #[cfg(feature = "postgres")]
            (Self::Postgres(inner), Kind::Postgres(url)) => {
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

    /// SQLite reports that a file system supports no write-ahead log only when asked.
    pub(super) fn check_journal_mode(&mut self, url: &DatabaseUrl) -> Result<(), StoreError> {
        if url.access() == Access::Read {
            return Ok(());
        }
        let Some((query, expected)) = self.dialect().journal_mode_query() else { return Ok(()) };
        let rows: Vec<JournalModeRow> = self.load(&Statement::new(self.dialect(), query))?;
        match rows.first() {
            Some(row) if row.journal_mode == expected => Ok(()),
            _ => Err(StoreError::NoWriteAheadLog { url: url.to_string() }),
        }
    }

    pub(crate) fn statement<'a>(&self, sql: impl Into<String>) -> Statement<'a> {
        Statement::new(self.dialect(), sql)
    }

    pub(crate) fn batch_execute(&mut self, sql: &str) -> diesel::QueryResult<()> {
        on_either!(self, inner => inner.batch_execute(sql))
    }

    /// Takes the notifications that have arrived on the channels that this connection listens to.
    pub(crate) fn notifications(&mut self) -> Result<Vec<String>, StoreError> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(inner) => {
                let texts =
                    inner.notifications_iter().map(|notification| Ok(notification?.payload));
                Ok(texts.collect::<diesel::QueryResult<_>>()?)
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => Ok(Vec::new()),
        }
    }

    /// Runs a statement and returns its rows.
    pub(crate) fn load<R: Row>(&mut self, statement: &Statement<'_>) -> Result<Vec<R>, StoreError> {
        #[cfg(test)]
        crate::plans::record(self, statement)?;
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(inner) => {
                if statement.has_no_rows() {
                    return Ok(Vec::new());
                }
                Ok(RunQueryDsl::load(statement, inner)?)
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite(inner) => {
                let mut found = Vec::new();
                for chunk in statement.chunks() {
                    found.extend(RunQueryDsl::load::<R>(chunk, inner)?);
                }
                Ok(found)
            }
        }
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub(crate) fn execute(&mut self, statement: &Statement<'_>) -> Result<usize, StoreError> {
        #[cfg(test)]
        crate::plans::record(self, statement)?;
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(inner) => {
                if statement.has_no_rows() {
                    return Ok(0);
                }
                Ok(RunQueryDsl::execute(statement, inner)?)
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite(inner) => {
                let mut touched = 0;
                for chunk in statement.chunks() {
                    touched += RunQueryDsl::execute(chunk, inner)?;
                }
                Ok(touched)
            }
        }
    }

    /// Runs `work` in one writing transaction, which is rolled back if it fails. On a connection of a
    /// pool, Diesel's own `transaction` would begin another one, which SQLite may refuse to let write.
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

#[derive(QueryableByName)]
struct JournalModeRow {
    #[diesel(sql_type = diesel::sql_types::Text)]
    journal_mode: String,
}
