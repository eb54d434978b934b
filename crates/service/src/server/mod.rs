//! The composition of all parts over one store and one ledger.

mod access;
mod base;
mod compose;
mod database_interface;
mod embedded;
mod error;
mod http_interface;
mod ledger;
mod ledger_inspection;
mod maintenance;
mod shared;
mod traces;
#[cfg(feature = "evm")]
mod withdrawal_moves;

use std::{fmt, sync::Arc, time::Duration};

use grid_batch_claims::{ChangeCounters, ClaimRequests, RecordedStream};
use grid_batch_core::batches::BatchFormat;
use grid_batch_core::{Clock, SystemClock};
use grid_batch_ledger_check::{LedgerCheck, LedgerMismatchError};
use grid_batch_monitoring::ServerCounts;
use grid_batch_store::Store;
use grid_batch_submitter::{DelayedServices, DelayedSummary, SubmitterCounters};
use grid_batch_support::{Jobs, Stops};

pub use access::AccessInForce;
pub use database_interface::DatabaseInterface;
pub use error::StartError;
pub use http_interface::fitting_http_connections;
pub(crate) use ledger::{BUILT_IN_LEDGERS, BuiltIn};
pub use ledger::{LedgerContext, gas_admin_addresses};
pub use ledger_inspection::{NodeService, ask_for_services, ask_nodes};

use crate::Config;
use compose::compose;
#[cfg(feature = "evm")]
use withdrawal_moves::WithdrawalMoves;

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
    url: String,
    submitter: SubmitterCounters,
    changes: ChangeCounters,
    delayed: DelayedServices,
    check: LedgerCheck,
    claim_requests: ClaimRequests,
    parts: Stops,
    stop_limit: Duration,
    store: Store,
    stream: RecordedStream,
    format: Arc<dyn BatchFormat>,
    /// Its runtime ends after all parts.
    _jobs: Jobs,
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
        ServerCounts::new(self.submitter.read(), self.changes.read())
    }

    /// The services whose batches the ledger does not accept now, from memory.
    pub fn delayed_services(&self) -> DelayedSummary {
        self.delayed.read()
    }

    /// Why the server must stop: it would use another ledger than the one of its database. It claims
    /// and submits nothing from then on.
    pub fn ledger_mismatch(&self) -> Option<&LedgerMismatchError> {
        self.check.mismatch()
    }

    /// Calls `stop` once there is a [mismatch](Self::ledger_mismatch), from any thread.
    pub fn on_ledger_mismatch(&self, stop: impl FnOnce() + Send + 'static) {
        self.check.on_mismatch(stop);
    }

    /// Stops the server: accepts and submits no more batches, waits for submissions under way, and
    /// records their outcomes. It returns within 5/3 of `ledger.request_timeout` and a few seconds, with an error if
    /// parts still wait for the database or the ledger then.
    pub fn stop(self) -> Result<(), StartError> {
        self.claim_requests.stop_taking();
        self.parts.stop_within(self.stop_limit).map_err(StartError::of_stop)
    }
}

impl fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningServer")
            .field("url", &self.url)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}
