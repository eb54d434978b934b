use std::time::Duration;

use super::{Connection, Store, StoreError, dialect::SessionLimits, url::DatabaseUrl};

/// A connection of its own, to see whether the database answers. Nothing else waits for it.
pub struct DatabaseProbe {
    url: DatabaseUrl,
    connection: Option<Connection>,
}

impl Store {
    /// A probe of this database. It connects when it is used.
    pub fn probe(&self) -> DatabaseProbe {
        DatabaseProbe { url: self.pools.url().clone(), connection: None }
    }
}

impl DatabaseProbe {
    /// A lock on the table that is read counts as no answer after this time.
    const LIMITS: SessionLimits =
        SessionLimits { lock: Duration::from_secs(1), idle_transaction: Duration::from_secs(5) };

    /// Reads from the database, on a new connection if the last one is broken.
    ///
    /// It blocks while the database does not answer.
    pub fn check(&mut self) -> Result<(), StoreError> {
        if let Some(connection) = &mut self.connection
            && read(connection).is_ok()
        {
            return Ok(());
        }
        self.connection = None;
        let url = self.url.to_string();
        let mut connection = Connection::open(&self.url, Self::LIMITS)
            .map_err(|source| StoreError::Connect { url, source })?;
        read(&mut connection)?;
        self.connection = Some(connection);
        Ok(())
    }
}

fn read(connection: &mut Connection) -> diesel::QueryResult<()> {
    connection.batch_execute("-- probe\n select instance_id from instances limit 1")
}

impl std::fmt::Debug for DatabaseProbe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseProbe").field("url", &self.url.to_string()).finish_non_exhaustive()
    }
}
