//! The composition of all parts over one store and one ledger.

mod access;
mod compose;
mod counts;
mod counts_log;
mod dependencies;
mod dependents;
mod error;
mod event_observer;
mod file_descriptors;
mod gas;
mod health;
mod in_flight;
mod ledger;
mod ledger_check;
mod ledger_inspection;
mod listeners;
mod metrics;
mod reads;
mod recall;
mod registration;
mod state_roots;
mod stopping;
mod webhooks;
#[cfg(feature = "evm")]
mod withdrawal_moves;

use std::{fmt, sync::Arc, time::Duration};

use grid_batch_api::RunningApi;
use grid_batch_claims::{
    ChangeCounters, ClaimMaintainer, DependentsJob, NotificationListener, OrphanRecovery, Retention,
};
use grid_batch_core::{Clock, InternalError, StatusReport, SystemClock};
use grid_batch_poller::{
    RunningEventMonitor, RunningMissingTransactionMonitor, RunningNextBatchMonitor,
    RunningPollingMonitor,
};
use grid_batch_store::{PendingBatch, Store};
use grid_batch_submitter::{DelayedServices, DelayedSummary, SubmitterCounters};
use grid_batch_support::{PeriodicThread, ShutdownHandle};
use grid_batch_webhooks::RunningDeliverer;

pub use access::AccessInForce;
pub use counts::ServerCounts;
pub use error::StartError;
pub use file_descriptors::fitting_http_connections;
pub(crate) use ledger::{BUILT_IN_LEDGERS, BuiltIn};
pub use ledger::{LedgerContext, gas_admin_addresses};
pub use ledger_check::LedgerMismatchError;
pub use ledger_inspection::{LedgerInspection, ToldIdentity, ToldService};
#[cfg(feature = "evm")]
pub use withdrawal_moves::{PoolMove, WithdrawalMoves};

use crate::Config;
use access::RunningAccess;
use compose::compose;
use counts_log::CountsLog;
use gas::RunningGasWatch;
use health::{RunningHealth, Watcher};
use ledger_check::RunningLedgerCheck;
use state_roots::RunningStateRootWatch;
use stopping::{Stop, stop_within};

/// The server: HTTP interface, queue, submitter and pollers over one store and one ledger.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Starts all parts. Batches that an earlier run left open are continued.
    pub fn start(config: &Config) -> Result<RunningServer, StartError> {
        Self::start_with_clock(config, Arc::new(SystemClock))
    }

    /// The same with another clock of this machine, so that a test can set its time of day.
    pub fn start_with_clock(
        config: &Config,
        clock: Arc<dyn Clock>,
    ) -> Result<RunningServer, StartError> {
        let config = &config.with_clock(&clock).with_nodes(&clock);
        let config = &config.with_payment_limits()?;
        let check = ledger::check(config)?;
        let open = ledger::prepare(config)?;
        compose(config, check, open)
    }
}

/// A running server.
pub struct RunningServer {
    api: RunningApi,
    url: String,
    access: RunningAccess,
    events: Option<RunningEventMonitor>,
    ask_ahead: Option<RunningNextBatchMonitor>,
    dependencies: Option<RunningMissingTransactionMonitor>,
    submitter: Box<dyn StoppableSubmitter>,
    submitter_counters: SubmitterCounters,
    delayed: DelayedServices,
    counts_log: CountsLog,
    poller: RunningPollingMonitor<PendingBatch, StatusReport>,
    recovery: OrphanRecovery,
    retention: Option<Retention>,
    webhooks: Option<RunningDeliverer>,
    dependents: DependentsJob,
    in_flight: Option<PeriodicThread>,
    recall: PeriodicThread,
    notifications: Option<NotificationListener>,
    claims: ClaimMaintainer,
    ledger_check: RunningLedgerCheck,
    state_roots: Option<RunningStateRootWatch>,
    gas: Option<RunningGasWatch>,
    health: RunningHealth,
    queue_metrics: Watcher,
    stop_limit: Duration,
    changes: ChangeCounters,
    store: Store,
}

impl RunningServer {
    /// The URL of the HTTP interface.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What happened to batches since the start.
    pub fn counts(&self) -> ServerCounts {
        ServerCounts::new(self.submitter_counters.read(), self.changes.read())
    }

    /// The services whose batches the ledger does not accept now, from memory.
    pub fn delayed_services(&self) -> DelayedSummary {
        self.delayed.read()
    }

    /// Why the server must stop: it would use another ledger than the one of its database. It claims
    /// and submits nothing from then on.
    pub fn ledger_mismatch(&self) -> Option<&LedgerMismatchError> {
        self.ledger_check.check().mismatch()
    }

    /// Calls `stop` once there is a [mismatch](Self::ledger_mismatch), from any thread.
    pub fn on_ledger_mismatch(&self, stop: impl FnOnce() + Send + 'static) {
        self.ledger_check.check().on_mismatch(stop);
    }

    /// Stops the server: accepts and submits no more batches, waits for submissions under way, and
    /// records their outcomes. It returns within `submit.drain_limit` and a few seconds, with an error if
    /// parts still wait for the database or the ledger then.
    pub fn stop(self) -> Result<(), StartError> {
        let Self { mut api, events, ask_ahead, dependencies, mut submitter, .. } = self;
        let Self { poller, stop_limit, .. } = self;
        let Self { recovery, retention, claims, ledger_check, gas, health, queue_metrics, .. } =
            self;
        let Self {
            state_roots,
            counts_log,
            dependents,
            in_flight,
            recall,
            notifications,
            access,
            webhooks,
            ..
        } = self;
        claims.stop_taking();
        // All drain at the same time.
        let requested = [api.signal_shutdown(), submitter.request_stop()];
        let first = vec![
            Stop::new("HTTP interface", || api.wait_for_shutdown()),
            Stop::new("submitter", || submitter.wait_until_stopped()),
            Stop::new("events", || events.map_or(Ok(()), ShutdownHandle::wait_for_shutdown)),
            Stop::new("questions", || ask_ahead.map_or(Ok(()), ShutdownHandle::wait_for_shutdown)),
            Stop::new("dependencies", || {
                dependencies.map_or(Ok(()), ShutdownHandle::wait_for_shutdown)
            }),
            Stop::new("poller", || poller.wait_for_shutdown()),
            Stop::new("webhooks", || webhooks.map_or(Ok(()), ShutdownHandle::wait_for_shutdown)),
        ];
        // Claims are released last: until then nothing else may work on the services.
        let last = vec![
            Stop::new("recovery", || dropped(recovery)),
            Stop::new("retention", || dropped(retention)),
            Stop::new("dependents", || dropped(dependents)),
            Stop::new("in-flight window", || dropped(in_flight)),
            Stop::new("recall", || dropped(recall)),
            Stop::new("access", || dropped(access)),
            Stop::new("notifications", || dropped(notifications)),
            Stop::new("state roots", || dropped(state_roots)),
            Stop::new("claims", || dropped(claims)),
            Stop::new("ledger check", || dropped(ledger_check)),
            Stop::new("gas", || dropped(gas)),
            Stop::new("health", || dropped(health)),
            Stop::new("metrics", || dropped(queue_metrics)),
            Stop::new("counts of batches", || dropped(counts_log)),
        ];
        stop_within(stop_limit, first, last)?;
        Ok(requested.into_iter().collect::<Result<(), InternalError>>()?)
    }
}

fn dropped<T>(part: T) -> Result<(), InternalError> {
    drop(part);
    Ok(())
}

impl fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningServer")
            .field("url", &self.url)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

/// A running submitter, whatever the type of its scopes.
trait StoppableSubmitter: Send {
    fn request_stop(&mut self) -> Result<(), InternalError>;

    fn wait_until_stopped(self: Box<Self>) -> Result<(), InternalError>;
}

impl<T: ShutdownHandle + Send> StoppableSubmitter for T {
    fn request_stop(&mut self) -> Result<(), InternalError> {
        self.signal_shutdown()
    }

    fn wait_until_stopped(self: Box<Self>) -> Result<(), InternalError> {
        self.wait_for_shutdown()
    }
}
