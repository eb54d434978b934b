use std::time::Duration;

use diesel::r2d2::{ManageConnection, Pool, PooledConnection, R2D2Connection};

use super::{Connection, Dialect, StoreError, connection::on_either, url::DatabaseUrl};

/// One pool of connections for writing and one for reading. On PostgreSQL they are the same pool.
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
        lock_timeout: Duration,
    ) -> Result<Self, StoreError> {
        // r2d2 does not report why it cannot connect, so the first connection is opened without it.
        let mut first = Connection::open(url, lock_timeout)
            .map_err(|source| StoreError::Connect { url: url.to_string(), source })?;
        first.check_journal_mode(url)?;
        let dialect = first.dialect();
        let pool = |size: u32| {
            Pool::builder()
                .max_size(size)
                .min_idle(Some(0))
                .connection_timeout(lock_timeout)
                .build(Manager { url: url.clone(), lock_timeout })
                .map_err(|source| StoreError::Unavailable { source: Box::new(source) })
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
    pool.get().map_err(|source| StoreError::Unavailable { source: Box::new(source) })
}

/// Opens connections for the pools.
#[derive(Debug)]
pub(crate) struct Manager {
    url: DatabaseUrl,
    lock_timeout: Duration,
}

impl ManageConnection for Manager {
    type Connection = Connection;
    type Error = diesel::r2d2::Error;

    fn connect(&self) -> Result<Connection, Self::Error> {
        Connection::open(&self.url, self.lock_timeout).map_err(diesel::r2d2::Error::ConnectionError)
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
