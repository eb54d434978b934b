use std::{
    path::Path,
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

pub(crate) use super::any_connection::AnyConnection as Connection;
#[cfg(feature = "sqlite")]
use super::private_file::prepare_database_file;
use super::{
    StoreError,
    dialect::{Dialect, Failure, classify},
    statement::Statement,
    url::{DatabaseUrl, Kind},
};

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

    pub(crate) fn open(url: &DatabaseUrl, lock_timeout: Duration) -> Result<Self, ConnectionError> {
        let mut connection = match url.kind() {
            #[cfg(feature = "postgres")]
            Kind::Postgres(url) => Self::Postgres(PgConnection::establish(url)?),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(path) => {
                let path = path.to_str().ok_or_else(|| {
                    ConnectionError::InvalidConnectionUrl("the path is not UTF-8".to_owned())
                })?;
                // If this fails, SQLite says why.
                let _ = prepare_database_file(Path::new(path));
                Self::Sqlite(SqliteConnection::establish(path)?)
            }
        };
        connection.configure(lock_timeout).map_err(ConnectionError::CouldntSetupConfiguration)?;
        Ok(connection)
    }

    /// Applies the settings of a connection. When several connections open a new SQLite file at
    /// once, SQLite does not wait for the change of the journal mode, so this retries.
    fn configure(&mut self, lock_timeout: Duration) -> diesel::QueryResult<()> {
        let settings = self.dialect().settings(lock_timeout);
        let deadline = Instant::now().checked_add(lock_timeout);
        loop {
            match self.batch_execute(&settings) {
                Err(error)
                    if classify(&error) == Some(Failure::Locked)
                        && deadline.is_none_or(|deadline| Instant::now() < deadline) =>
                {
                    thread::sleep(Duration::from_millis(2));
                }
                done => return done,
            }
        }
    }

    /// SQLite reports that a file system supports no write-ahead log only when asked.
    pub(super) fn check_journal_mode(&mut self, url: &DatabaseUrl) -> Result<(), StoreError> {
        let Some((query, expected)) = self.dialect().journal_mode_query() else { return Ok(()) };
        let rows: Vec<JournalModeRow> = self.load(&Statement::new(self.dialect(), query))?;
        match rows.first() {
            Some(row) if row.journal_mode == expected => Ok(()),
            _ => Err(StoreError::NoWriteAheadLog { url: url.to_string() }),
        }
    }

    pub(crate) fn batch_execute(&mut self, sql: &str) -> diesel::QueryResult<()> {
        on_either!(self, inner => inner.batch_execute(sql))
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
                for one in statement.for_each_row() {
                    found.extend(RunQueryDsl::load::<R>(one, inner)?);
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
                for one in statement.for_each_row() {
                    touched += RunQueryDsl::execute(one, inner)?;
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
