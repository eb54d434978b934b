use std::{fmt, sync::Arc, time::Duration};

use grid_batch_core::{Clock, SystemClock, Timestamp};

use super::{
    Dialect, Statement, StoreError, last_seen::LastSeen, migrations::migrate, pools::Pools,
    url::DatabaseUrl,
};

/// A durable store of batches: what [`add`](Self::add) has returned survives a crash.
///
/// A store can be shared and cloned; clones use the same connections. Its methods block.
#[derive(Clone)]
pub struct Store {
    pub(crate) pools: Pools,
    pub(crate) last_seen: Arc<LastSeen>,
    clock: Arc<dyn Clock>,
}

/// How a store uses its database.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The largest number of connections. On SQLite these read, and one more writes.
    pub connections: u32,
    /// The longest wait for a free connection and for a lock; at most a day.
    pub lock_timeout: Duration,
    /// Gives the current time.
    pub clock: Arc<dyn Clock>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { connections: 8, lock_timeout: Duration::from_secs(30), clock: Arc::new(SystemClock) }
    }
}

impl Store {
    /// Opens the database and brings its schema up to date, without a look at whether it was restored.
    pub(crate) fn connect(url: &DatabaseUrl, options: StoreOptions) -> Result<Self, StoreError> {
        let lock_timeout = options.lock_timeout.min(Duration::from_secs(24 * 60 * 60));
        let pools = Pools::open(url, options.connections.max(1), lock_timeout)?;
        let store = Self { pools, last_seen: Arc::default(), clock: options.clock };
        migrate(&mut *store.pools.write()?)?;
        Ok(store)
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.pools.dialect()
    }

    pub(crate) fn statement<'a>(&self, sql: impl Into<String>) -> Statement<'a> {
        Statement::new(self.dialect(), sql)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("dialect", &self.dialect()).finish_non_exhaustive()
    }
}
