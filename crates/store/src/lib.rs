#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(all(feature = "postgres", feature = "sqlite")),
    expect(unused, reason = "what only the other database needs")
)]

#[cfg(not(any(feature = "postgres", feature = "sqlite")))]
compile_error!("a store needs a database: enable the feature \"postgres\", \"sqlite\", or both");

mod add;
mod any_connection;
mod asked;
mod claims;
mod connection;
mod dialect;
mod doubts;
mod error;
mod holding;
mod insert;
mod interface;
mod lanes;
mod list;
mod migrations;
mod monitor;
mod notes;
mod observer;
mod pending;
#[cfg(test)]
mod plans;
mod query;
mod record;
mod recover;
mod retention;
mod round;
mod rows;
mod schema;
mod signing;
mod stamps;
mod statement;
mod story;
mod url;
mod withdrawals;

use std::{fmt, sync::Arc, time::Duration};

use grid_batch_core::{Clock, SystemClock, Timestamp};

pub use claims::{ClaimError, ClaimOptions, ClaimStore};
pub use error::StoreError;
pub use monitor::MonitorStore;
pub use observer::StoreObserver;
pub use pending::PendingBatch;
pub use retention::{Removed, RetentionCursor};
pub use signing::SigningError;
pub use url::{DatabaseUrl, UrlError};

use connection::Pools;
use statement::Statement;

/// Batches, durably: what [`add`](Self::add) has returned survives a crash.
///
/// A store can be shared and cloned; clones use the same connections. Its methods block.
#[derive(Clone)]
pub struct Store {
    pools: Pools,
    clock: Arc<dyn Clock>,
}

/// How a store uses its database.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// So many connections at most; on SQLite these read, and one more writes.
    pub connections: u32,
    /// How long to wait for a free connection, or for a lock that another holds; a day at most.
    pub patience: Duration,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { connections: 8, patience: Duration::from_secs(30), clock: Arc::new(SystemClock) }
    }
}

impl Store {
    /// Opens the database and brings its schema up to date. An SQLite file is made where there is
    /// none.
    pub fn open(url: &DatabaseUrl, options: StoreOptions) -> Result<Self, StoreError> {
        let patience = options.patience.min(Duration::from_secs(24 * 60 * 60));
        let pools = Pools::open(url, options.connections.max(1), patience)?;
        let store = Self { pools, clock: options.clock };
        migrations::migrate(&mut *store.pools.write()?)?;
        Ok(store)
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn statement<'a>(&self, sql: impl Into<String>) -> Statement<'a> {
        Statement::new(self.pools.dialect(), sql)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("dialect", &self.pools.dialect()).finish_non_exhaustive()
    }
}
