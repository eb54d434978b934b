use std::time::Duration;

use grid_batch_core::queries::DiskSpace;

use super::{Connection, Store, StoreError, dialect::SessionLimits, pools::Pools};

/// Checks on a separate connection whether the database answers. Nothing else waits for this connection. If a program
/// lends its pool, a connection of the pool is used for each check.
pub struct DatabaseProbe {
    pools: Pools,
    connection: Option<Connection<'static>>,
}

impl Store {
    /// A probe of this database. It connects when it is used.
    pub fn probe(&self) -> DatabaseProbe {
        DatabaseProbe { pools: self.pools.clone(), connection: None }
    }
}

impl DatabaseProbe {
    /// If the table that is read is locked for longer than this, it counts as no answer.
    const LIMITS: SessionLimits =
        SessionLimits { lock: Duration::from_secs(1), idle_transaction: Duration::from_secs(5) };

    /// Reads from the database, on a new connection if the last one is broken. Returns the space of its file system, if
    /// it is a file.
    ///
    /// It blocks while the database does not answer.
    pub fn check(&mut self) -> Result<Option<DiskSpace>, StoreError> {
        self.answers()?;
        Ok(self.space())
    }

    fn answers(&mut self) -> Result<(), StoreError> {
        if self.pools.are_lent() {
            return Ok(read(&mut *self.pools.read()?)?);
        }
        if let Some(connection) = &mut self.connection
            && read(connection).is_ok()
        {
            return Ok(());
        }
        self.connection = None;
        let url = self.pools.url();
        let failed = |source| StoreError::Connect { url: url.to_string(), source };
        let mut connection =
            Connection::open(url, Self::LIMITS, self.pools.namespace()).map_err(failed)?;
        read(&mut connection)?;
        self.connection = Some(connection);
        Ok(())
    }
}

impl DatabaseProbe {
    /// What cannot be found out is no reason to warn.
    fn space(&self) -> Option<DiskSpace> {
        let system = rustix::fs::statvfs(self.pools.url().file()?).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(system.f_frsize);
        Some(DiskSpace { free: bytes(system.f_bavail), total: bytes(system.f_blocks) })
    }
}

fn read(connection: &mut Connection) -> diesel::QueryResult<()> {
    connection.batch_execute("-- probe\n select instance_id from instances limit 1")
}

impl std::fmt::Debug for DatabaseProbe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseProbe").field("url", self.pools.url()).finish_non_exhaustive()
    }
}
