//! The composition of all parts over one store and one ledger.

mod compose;
mod counts;
mod error;
mod event_observer;
mod ledger;
mod registration;

use std::fmt;

use grid_batch_api::RunningApi;
use grid_batch_claims::{ChangeFollowUp, ClaimMaintainer, OrphanRecovery};
use grid_batch_core::{InternalError, ShutdownHandle, StatusReport};
use grid_batch_poller::{RunningEventMonitor, RunningPollingMonitor};
use grid_batch_store::{PendingBatch, Store};
use grid_batch_submitter::SubmitterCounters;

pub use counts::ServerCounts;
pub use error::StartError;

use crate::{Config, LedgerKind};
use compose::compose;

/// The server: HTTP interface, queue, submitter and pollers over one store and one ledger.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Starts all parts. Batches that an earlier run left open are continued.
    pub fn start(config: &Config) -> Result<RunningServer, StartError> {
        match config.ledger.kind {
            Some(LedgerKind::Sawtooth) => {
                let ledger = ledger::sawtooth(&config.ledger, &config.poll)?;
                compose(config, |store| Ok(ledger.with_store(store)))
            }
            Some(LedgerKind::Scabbard) => {
                let ledger = ledger::scabbard(&config.ledger, &config.poll)?;
                compose(config, |_| Ok(ledger))
            }
            #[cfg(feature = "evm")]
            Some(LedgerKind::Evm) => {
                let chain = ledger::evm(config)?;
                compose(config, |store| chain.with_store(store))
            }
            #[cfg(not(feature = "evm"))]
            Some(LedgerKind::Evm) => Err(StartError::NotBuilt { kind: "evm" }),
            None => Err(StartError::Missing {
                name: "ledger.kind",
                rule: "it must be \"sawtooth\", \"scabbard\" or \"evm\"",
            }),
        }
    }
}

/// A running server.
pub struct RunningServer {
    api: RunningApi,
    events: Option<RunningEventMonitor>,
    submitter: Box<dyn StoppableSubmitter>,
    submitter_counters: SubmitterCounters,
    poller: RunningPollingMonitor<PendingBatch, StatusReport>,
    recovery: OrphanRecovery,
    claims: ClaimMaintainer,
    follow_up: ChangeFollowUp,
    store: Store,
}

impl RunningServer {
    /// The URL of the HTTP interface.
    pub fn url(&self) -> String {
        format!("http://{}", self.api.local_addr())
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What happened to batches since the start.
    pub fn counts(&self) -> ServerCounts {
        ServerCounts::new(self.submitter_counters.read(), self.follow_up.counts())
    }

    /// Stops the server: accepts and submits no more batches, waits for submissions under way, and
    /// records their outcomes.
    pub fn stop(self) -> Result<(), StartError> {
        let Self { mut api, events, mut submitter, poller, recovery, claims, .. } = self;
        claims.stop_taking();
        // Both drain at the same time.
        let requested = [api.signal_shutdown(), submitter.request_stop()];
        let stopped = [
            api.wait_for_shutdown(),
            submitter.wait_until_stopped(),
            events.map_or(Ok(()), ShutdownHandle::wait_for_shutdown),
            poller.wait_for_shutdown(),
        ];
        // Claims are released last: until then nothing else may work on the services.
        drop((recovery, claims));
        Ok(requested.into_iter().chain(stopped).collect::<Result<(), InternalError>>()?)
    }
}

impl fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningServer")
            .field("address", &self.api.local_addr())
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
