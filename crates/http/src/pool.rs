//! Connections that are kept for the next requests.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use grid_batch_support::lock;
use tokio::{
    runtime::{Handle, Id},
    time::{Instant, sleep_until},
};

use crate::connection::Connection;

/// The connections of a client that are not in use.
///
/// A connection is used only on the runtime that opened it: another runtime does not poll its socket.
pub(crate) struct ConnectionPool {
    timeout: Duration,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    by_origin: HashMap<String, Vec<KeptConnection>>,
    /// The runtimes on which a task closes connections that were idle for too long.
    with_expiry_task: HashSet<Id>,
}

struct KeptConnection {
    connection: Box<Connection>,
    runtime: Id,
    idle_since: Instant,
}

impl ConnectionPool {
    /// A pool that keeps connections for this long.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { timeout, kept: Mutex::default() }
    }

    /// The connection to this origin that was used last.
    pub(crate) fn take(&self, origin: &str) -> Option<Box<Connection>> {
        let (runtime, now) = (Handle::current().id(), Instant::now());
        let mut kept = lock(&self.kept);
        let connections = kept.by_origin.get_mut(origin)?;
        let of_runtime = connections.iter().rposition(|kept| kept.runtime == runtime)?;
        let last = connections.remove(of_runtime);
        // The others were used before it, so the task closes them soon.
        (!last.is_expired(self.timeout, now)).then_some(last.connection)
    }

    pub(crate) fn keep(self: &Arc<Self>, origin: String, connection: Box<Connection>) {
        let runtime = Handle::current().id();
        let mut kept = lock(&self.kept);
        let of_origin = kept.by_origin.entry(origin).or_default();
        of_origin.push(KeptConnection { connection, runtime, idle_since: Instant::now() });
        let needs_expiry_task = kept.with_expiry_task.insert(runtime);
        // A runtime that is shutting down drops the task at once, which takes the lock.
        drop(kept);
        if needs_expiry_task {
            let task = ExpiryTask { pool: Arc::downgrade(self), runtime, has_ended: false };
            drop(tokio::spawn(task.run(Instant::now() + self.timeout)));
        }
    }

    /// Removes the connections of this runtime that were idle for too long. Returns when the next one will
    /// have been; `None` if the runtime has no others.
    fn remove_expired(&self, runtime: Id) -> Option<Instant> {
        let now = Instant::now();
        let mut kept = lock(&self.kept);
        let removed =
            kept.remove(|kept| kept.runtime == runtime && kept.is_expired(self.timeout, now));
        let others = kept.by_origin.values().flatten().filter(|kept| kept.runtime == runtime);
        let next = others.map(|kept| kept.idle_since).min();
        if next.is_none() {
            kept.with_expiry_task.remove(&runtime);
        }
        drop(kept);
        drop(removed);
        next.map(|idle_since| idle_since + self.timeout)
    }
}

impl Kept {
    fn remove(&mut self, condition: impl Fn(&KeptConnection) -> bool) -> Vec<KeptConnection> {
        let mut removed = Vec::new();
        self.by_origin.retain(|_, connections| {
            removed.extend(connections.extract_if(.., |kept| condition(kept)));
            !connections.is_empty()
        });
        removed
    }
}

impl KeptConnection {
    fn is_expired(&self, timeout: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.idle_since) >= timeout
    }
}

/// Closes the connections of a runtime that were idle for too long, while there are any. If it is dropped
/// before, the runtime ends, and its connections with it.
struct ExpiryTask {
    pool: Weak<ConnectionPool>,
    runtime: Id,
    has_ended: bool,
}

impl ExpiryTask {
    async fn run(mut self, first: Instant) {
        let mut next = Some(first);
        while let Some(time) = next {
            sleep_until(time).await;
            let Some(pool) = self.pool.upgrade() else { break };
            next = pool.remove_expired(self.runtime);
        }
        self.has_ended = true;
    }
}

impl Drop for ExpiryTask {
    fn drop(&mut self) {
        let Some(pool) = self.pool.upgrade().filter(|_| !self.has_ended) else { return };
        let mut kept = lock(&pool.kept);
        kept.with_expiry_task.remove(&self.runtime);
        let removed = kept.remove(|kept| kept.runtime == self.runtime);
        drop(kept);
        drop(removed);
    }
}
