//! The connection pool of a program that has the store's tables in its own database.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

#[cfg(feature = "postgres")]
use diesel::pg::PgConnection;
#[cfg(feature = "sqlite")]
use diesel::sqlite::SqliteConnection;
use diesel::{
    connection::SimpleConnection as _,
    r2d2::{
        ConnectionManager, CustomizeConnection, ManageConnection, Pool, PooledConnection, State,
    },
};

use grid_batch_support::lock;

use super::{
    Connection, Dialect, Statement, StoreError, connection::Session, dialect::SessionLimits,
    handle::StoreOptions, namespace::Namespace, pools::get, url::DatabaseUrl,
};

/// A connection pool that a program lends to a store. Clones are the same pool.
#[derive(Debug, Clone)]
pub enum ProgramPool {
    /// Connections to PostgreSQL.
    #[cfg(feature = "postgres")]
    Postgres(Pool<ConnectionManager<PgConnection>>),
    /// Connections to a file of SQLite.
    #[cfg(feature = "sqlite")]
    Sqlite(Pool<ConnectionManager<SqliteConnection>>),
}

#[cfg(feature = "postgres")]
impl From<Pool<ConnectionManager<PgConnection>>> for ProgramPool {
    fn from(pool: Pool<ConnectionManager<PgConnection>>) -> Self {
        Self::Postgres(pool)
    }
}

#[cfg(feature = "sqlite")]
impl From<Pool<ConnectionManager<SqliteConnection>>> for ProgramPool {
    fn from(pool: Pool<ConnectionManager<SqliteConnection>>) -> Self {
        Self::Sqlite(pool)
    }
}

impl ProgramPool {
    /// Gets a connection within this limit, with the stores that have checked it.
    pub(super) fn get(
        &self,
        limit: Duration,
        namespace: &Namespace,
    ) -> Result<(Connection<'static>, CheckedBy), StoreError> {
        let (session, checked) = match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(pool) => {
                let mut session = get(pool, limit)?;
                let checked = CheckedBy::of(&mut session);
                (Session::Postgres(Box::new(session)), checked)
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite(pool) => {
                let mut session = get(pool, limit)?;
                let checked = CheckedBy::of(&mut session);
                (Session::Sqlite(Box::new(session)), checked)
            }
        };
        Ok((Connection::new(session, namespace.clone()), checked))
    }

    /// How many connections there are, and how many there may be.
    pub(super) fn state(&self) -> (State, u32) {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(pool) => (pool.state(), pool.max_size()),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(pool) => (pool.state(), pool.max_size()),
        }
    }
}

/// Sets what the store needs in each session of a pool that a program lends to it. On PostgreSQL, these are time
/// limits, the isolation of transactions and planner settings; on SQLite, a synchronized write-ahead log and foreign
/// keys. The program's own statements also run with these settings.
///
/// ```no_run
/// use diesel::{pg::PgConnection, r2d2::{ConnectionManager, Pool}};
/// use grid_batch_store::{Namespace, SessionSettings, Store, StoreOptions};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let namespace = Namespace::new("grid_batch")?;
/// let options = StoreOptions { namespace, ..StoreOptions::default() };
/// let pool = Pool::builder()
///     .connection_customizer(Box::new(SessionSettings::new(&options)))
///     .build(ConnectionManager::<PgConnection>::new("postgres://db.example/program"))?;
/// let store = Store::over(pool, options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SessionSettings {
    limits: SessionLimits,
}

impl SessionSettings {
    /// The settings for a store that is opened with these options.
    pub fn new(options: &StoreOptions) -> Self {
        Self { limits: options.session_limits() }
    }
}

#[cfg(feature = "postgres")]
impl CustomizeConnection<PgConnection, diesel::r2d2::Error> for SessionSettings {
    fn on_acquire(&self, connection: &mut PgConnection) -> Result<(), diesel::r2d2::Error> {
        let settings = Dialect::Postgres.settings(self.limits);
        connection.batch_execute(&settings).map_err(diesel::r2d2::Error::QueryError)
    }
}

#[cfg(feature = "sqlite")]
impl CustomizeConnection<SqliteConnection, diesel::r2d2::Error> for SessionSettings {
    fn on_acquire(&self, connection: &mut SqliteConnection) -> Result<(), diesel::r2d2::Error> {
        let settings = Dialect::Sqlite.settings(self.limits);
        connection.batch_execute(&settings).map_err(diesel::r2d2::Error::QueryError)
    }
}

/// Fails if the session does not have the settings that the store needs.
pub(super) fn check_settings(
    connection: &mut Connection,
    limits: SessionLimits,
) -> Result<(), StoreError> {
    let dialect = connection.dialect();
    let query = Statement::new(dialect.settings_query());
    let rows: Vec<(String, String)> = connection.load_tuples(&query)?;
    let found: BTreeMap<_, _> = rows.iter().map(|(name, setting)| (&**name, &**setting)).collect();
    let differs = |(name, needed): &(&str, String)| found.get(name) != Some(&&**needed);
    let missing = dialect.needed_settings(limits).into_iter().filter(differs);
    let settings: Vec<String> =
        missing.map(|(name, needed)| format!("{name} = {needed}")).collect();
    if settings.is_empty() { Ok(()) } else { Err(StoreError::SessionSettings { settings }) }
}

/// The database of the session, for messages and for the lock beside a file.
pub(super) fn url_of(connection: &mut Connection) -> Result<DatabaseUrl, StoreError> {
    let dialect = connection.dialect();
    let query = Statement::new(dialect.database_name_query());
    let names: Vec<String> = connection.load_column(&query)?;
    let name = names.first().ok_or_else(|| StoreError::corrupt("the database has no name"))?;
    Ok(DatabaseUrl::of_session(dialect, name))
}

/// The stores that have checked a connection. r2d2 stores it with the connection.
#[derive(Debug, Clone, Default)]
pub(super) struct CheckedBy(Arc<Mutex<BTreeSet<u64>>>);

impl CheckedBy {
    fn of<M: ManageConnection>(session: &mut PooledConnection<M>) -> Self {
        let extensions = PooledConnection::extensions_mut(session);
        if extensions.get::<Self>().is_none() {
            extensions.insert(Self::default());
        }
        extensions.get::<Self>().cloned().unwrap_or_default()
    }

    pub(super) fn contains(&self, pools: u64) -> bool {
        lock(&self.0).contains(&pools)
    }

    pub(super) fn insert(&self, pools: u64) {
        lock(&self.0).insert(pools);
    }
}
