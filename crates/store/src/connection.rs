use std::{
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
    r2d2::{ManageConnection, Pool, PooledConnection, R2D2Connection},
};
use log::warn;

pub(crate) use crate::any_connection::AnyConnection as Connection;
use crate::{
    DatabaseUrl, StoreError,
    dialect::{self, Dialect},
    statement::Statement,
    url::Kind,
};

/// Runs the same expression on whichever connection it is.
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

/// A row that either database can give.
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
    pub(crate) fn open(url: &DatabaseUrl, patience: Duration) -> Result<Self, ConnectionError> {
        let mut connection = match url.kind() {
            #[cfg(feature = "postgres")]
            Kind::Postgres(url) => Self::Postgres(PgConnection::establish(url)?),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(path) => {
                let path = path.to_str().ok_or_else(|| {
                    ConnectionError::InvalidConnectionUrl("the path is not UTF-8".to_owned())
                })?;
                Self::Sqlite(SqliteConnection::establish(path)?)
            }
        };
        connection.greet(patience).map_err(ConnectionError::CouldntSetupConfiguration)?;
        Ok(connection)
    }

    /// Makes the settings of the connection. SQLite does not wait when others that open the same
    /// new file are about to change its journal too, so we do.
    fn greet(&mut self, patience: Duration) -> diesel::QueryResult<()> {
        let greeting = self.dialect().greeting(patience);
        let deadline = Instant::now().checked_add(patience);
        loop {
            match self.batch_execute(&greeting) {
                Err(error)
                    if dialect::is_locked(&error)
                        && deadline.is_none_or(|deadline| Instant::now() < deadline) =>
                {
                    thread::sleep(Duration::from_millis(2));
                }
                done => return done,
            }
        }
    }

    fn check_journal(&mut self, url: &DatabaseUrl) -> Result<(), StoreError> {
        let Some((question, expected)) = self.dialect().journal_mode() else { return Ok(()) };
        let rows: Vec<AnswerRow> = self.load(&Statement::new(self.dialect(), question))?;
        match rows.first() {
            Some(row) if row.answer == expected => Ok(()),
            _ => {
                let message = format!("{url}: its file system cannot keep a write-ahead log");
                Err(StoreError::Unavailable { message })
            }
        }
    }

    pub(crate) fn batch_execute(&mut self, sql: &str) -> diesel::QueryResult<()> {
        on_either!(self, inner => inner.batch_execute(sql))
    }

    /// Runs a statement for the rows it gives.
    pub(crate) fn load<R: Row>(&mut self, statement: &Statement<'_>) -> Result<Vec<R>, StoreError> {
        #[cfg(test)]
        crate::plans::note(self, statement)?;
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(inner) => {
                if statement.is_for_no_rows() {
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

    /// Runs a statement for its effect, and says how many rows it touched.
    pub(crate) fn execute(&mut self, statement: &Statement<'_>) -> Result<usize, StoreError> {
        #[cfg(test)]
        crate::plans::note(self, statement)?;
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(inner) => {
                if statement.is_for_no_rows() {
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

    /// Does `work` in one transaction: all of it, or nothing.
    pub(crate) fn transaction<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let begin = self.dialect().begin();
        self.within(begin, work)
    }

    /// Reads all that `work` reads as it was at one moment.
    pub(crate) fn snapshot<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let begin = self.dialect().begin_reading();
        self.within(begin, work)
    }

    fn within<T, E: From<StoreError>>(
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
                    // The first error is the one that counts; the pool drops a broken connection.
                    warn!(error:% = second; "a transaction could not be rolled back");
                }
                Err(error)
            }
        }
    }
}

#[derive(QueryableByName)]
struct AnswerRow {
    #[diesel(sql_type = diesel::sql_types::Text)]
    answer: String,
}

/// Opens connections for the pools.
#[derive(Debug)]
pub(crate) struct Manager {
    url: DatabaseUrl,
    patience: Duration,
}

impl ManageConnection for Manager {
    type Connection = Connection;
    type Error = diesel::r2d2::Error;

    fn connect(&self) -> Result<Connection, Self::Error> {
        Connection::open(&self.url, self.patience).map_err(diesel::r2d2::Error::ConnectionError)
    }

    fn is_valid(&self, connection: &mut Connection) -> Result<(), Self::Error> {
        on_either!(connection, inner => R2D2Connection::ping(inner))
            .map_err(diesel::r2d2::Error::QueryError)
    }

    fn has_broken(&self, connection: &mut Connection) -> bool {
        std::thread::panicking()
            || on_either!(connection, inner => R2D2Connection::is_broken(inner))
    }
}

/// Connections for those who write and for those who only read.
#[derive(Clone)]
pub(crate) struct Pools {
    write: Pool<Manager>,
    read: Pool<Manager>,
    dialect: Dialect,
    url: DatabaseUrl,
}

impl Pools {
    pub(crate) fn open(
        url: &DatabaseUrl,
        connections: u32,
        patience: Duration,
    ) -> Result<Self, StoreError> {
        // The first connection is made here, where its error can be told in full.
        let mut first = Connection::open(url, patience)
            .map_err(|error| StoreError::Unavailable { message: format!("{url}: {error}") })?;
        first.check_journal(url)?;
        let dialect = first.dialect();
        let pool = |size: u32| {
            Pool::builder()
                .max_size(size)
                .min_idle(Some(0))
                .connection_timeout(patience)
                .build(Manager { url: url.clone(), patience })
                .map_err(|error| StoreError::Unavailable { message: format!("{url}: {error}") })
        };
        let writers = dialect.writers(connections);
        let write = pool(writers)?;
        let read = if writers == connections { write.clone() } else { pool(connections)? };
        Ok(Self { write, read, dialect, url: url.clone() })
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn url(&self) -> &DatabaseUrl {
        &self.url
    }

    pub(crate) fn write(&self) -> Result<PooledConnection<Manager>, StoreError> {
        get(&self.write)
    }

    pub(crate) fn read(&self) -> Result<PooledConnection<Manager>, StoreError> {
        get(&self.read)
    }
}

fn get(pool: &Pool<Manager>) -> Result<PooledConnection<Manager>, StoreError> {
    pool.get().map_err(|error| StoreError::Unavailable { message: error.to_string() })
}
