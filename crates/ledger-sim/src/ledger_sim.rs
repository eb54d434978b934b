use std::{fmt, net::SocketAddr, sync::Arc, thread::JoinHandle, time::Duration};

use grid_batch_core::{ItemId, ServiceId, ServiceScopeId};
use grid_batch_protocol::VerifiedBatch;
use tokio::sync::oneshot;

use crate::{
    Audit, AuditedBatches, Entry, Fault, LedgerSimBuilder, LoggedRequest, StateAudit, StateValues,
    WebSocketCounts, When, audit, audit_state,
    port::PortControl,
    sawtooth::SharedChain,
    scabbard::Circuits,
    sim_context::{LedgerState, SimContext},
};

/// A simulated ledger that serves on a loopback port until it is dropped.
///
/// It runs on its own thread. Its methods take effect before they return, and first do all work that
/// is due.
pub struct LedgerSim {
    context: Arc<SimContext>,
    address: SocketAddr,
    seed: u64,
    shared: SharedParts,
    port: PortControl,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The chain or circuit that other nodes may join.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedParts {
    pub(crate) chain: SharedChain,
    pub(crate) circuits: Circuits,
}

impl LedgerSim {
    /// A Sawtooth validator with its REST API.
    pub fn sawtooth() -> LedgerSimBuilder {
        LedgerSimBuilder::sawtooth()
    }

    /// A Splinter node with these Scabbard services.
    pub fn scabbard(services: impl IntoIterator<Item = ServiceScopeId>) -> LedgerSimBuilder {
        LedgerSimBuilder::scabbard(services.into_iter().collect())
    }

    pub(crate) fn new(
        context: Arc<SimContext>,
        address: SocketAddr,
        seed: u64,
        shared: SharedParts,
        port: PortControl,
        stop: oneshot::Sender<()>,
        thread: JoinHandle<()>,
    ) -> Self {
        Self { context, address, seed, shared, port, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn chain(&self) -> SharedChain {
        self.shared.chain.clone()
    }

    pub(crate) fn circuits(&self) -> &Circuits {
        &self.shared.circuits
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The seed of its random numbers.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Switches a fault on, or off with [`When::Never`]. It replaces an earlier setting.
    pub fn inject(&self, fault: Fault, when: When) {
        self.context.advanced_state().common.faults.set(fault, when);
    }

    /// Switches all faults off, including those of the builder. A frozen ledger stays frozen.
    pub fn heal(&self) {
        self.context.advanced_state().common.faults.clear();
    }

    /// Makes a batch invalid if `rule` returns a message for it. It replaces an earlier rule.
    pub fn refuse(&self, rule: impl Fn(&VerifiedBatch) -> Option<String> + Send + Sync + 'static) {
        self.context.advanced_state().common.rule = Some(Arc::new(rule));
    }

    /// Stops answering. The ledger still accepts connections, reads requests, and commits the
    /// batches that it has accepted. A Scabbard node votes on no batch of another node.
    pub fn freeze(&self) {
        self.context.set_frozen(true);
    }

    /// Answers again. Requests that were read in the meantime are handled first, even if their
    /// clients have disconnected.
    pub fn thaw(&self) {
        self.context.set_frozen(false);
    }

    /// The number of submissions that [`Fault::LateArrival`] keeps.
    pub fn kept_submissions(&self) -> usize {
        self.context.kept_submissions()
    }

    /// Handles the submissions that [`Fault::LateArrival`] keeps, now.
    pub fn deliver_late(&self) {
        self.context.deliver_late();
    }

    /// Restarts the ledger: connections are reset, and everything that it had only in memory is lost. Sawtooth loses
    /// all batches that are not committed; Scabbard also loses the statuses of committed batches.
    pub fn restart(&self) {
        self.context.restart();
    }

    /// Restarts the ledger if no batch waits in it, and returns whether it did.
    pub fn restart_if_idle(&self) -> bool {
        self.context.restart_if_idle()
    }

    /// Kills the ledger's process: connections are reset, later ones are refused, and everything that it had only in
    /// memory is lost, as by [`LedgerSim::restart`].
    pub fn kill(&self) {
        self.port.set_open(false);
        self.context.stop();
    }

    /// Starts a killed ledger again, with the same address.
    pub fn start_again(&self) {
        self.context.start_again();
        self.port.set_open(true);
    }

    /// Ends the validator of a Sawtooth ledger, as a crash does: everything that it had only in memory is lost. Its
    /// REST API stays up. Requests in flight are answered 503 with code 18, and later ones after
    /// `timeout` 503 with code 17. Event websockets stay open and receive a warning.
    pub fn crash_validator(&self, timeout: Duration) {
        self.context.crash_validator(timeout);
    }

    /// Starts the validator of a Sawtooth ledger after a crash, or instead of the one that is running.
    /// Requests that still wait for it are handled then.
    pub fn start_validator(&self) {
        self.context.start_validator();
    }

    /// Creates another Scabbard service on the node.
    pub fn add_service(&self, service: ServiceScopeId) {
        let mut state = self.context.advanced_state();
        let LedgerState { ledger, common, .. } = &mut *state;
        ledger.add_service(service, &common.record);
    }

    /// Sets whether a Splinter node has started its services. While it has not, it answers as if it did not have them.
    pub fn set_services_started(&self, started: bool) {
        self.context.advanced_state().ledger.set_started(started);
    }

    /// Gives this node of a circuit the state of another one, as the circuit's operators do after
    /// [`Fault::WritesAlone`]. Scabbard only.
    pub fn restore_state(&self) {
        self.context.advanced_state().ledger.restore_state();
    }

    /// Restarts Sawtooth's REST API but not its validator: connections are reset, nothing else is lost, and sending of
    /// events resumes.
    pub fn restart_interface(&self) {
        self.context.restart_interface();
    }

    /// Sends no more events to any client, like a node of Sawtooth after a subscriber has died: websockets stay open,
    /// pings are answered, and a new client gets the block that was the newest at that time. A restart of the interface
    /// or the ledger ends this.
    pub fn stop_sending_events(&self) {
        self.context.advanced_state().common.events.stop_sending();
    }

    /// The number of open event websockets, and how others ended until now.
    pub fn websockets(&self) -> WebSocketCounts {
        self.context.state().common.events.websockets()
    }

    /// All executions until now, in order.
    pub fn record(&self) -> Vec<Entry> {
        self.context.advanced_state().common.record.entries().to_vec()
    }

    /// Compares the record with the promised batches, as [`audit()`] does.
    pub fn audit(&self, promised: &[(ServiceId, ItemId)]) -> Audit {
        audit(self.context.advanced_state().common.record.entries(), promised)
    }

    /// Compares the record with the result of applying the accepted batches one by one, as [`audit_state`] does.
    /// Sawtooth only.
    pub fn audit_state<'a>(&self, batches: impl Into<AuditedBatches<'a>>) -> StateAudit {
        audit_state(self.context.advanced_state().common.record.entries(), batches)
    }

    /// The values that batches of the family [`StateOperation::FAMILY`](crate::StateOperation::FAMILY) have written.
    /// Empty on Scabbard.
    pub fn state_values(&self) -> StateValues {
        self.context.advanced_state().ledger.state_values()
    }

    /// The maximum number of batches that have waited to be executed at once, until now. 0 on Scabbard.
    pub fn most_waiting(&self) -> usize {
        self.context.state().ledger.most_waiting()
    }

    /// The latest requests, in the order in which they were read, including those that were reset later.
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.context.state().requests.to_vec()
    }

    /// How often a batch was received since the start, with any response. Requests that were reset
    /// before they were handled do not count.
    pub fn times_received(&self, batch_id: &ItemId) -> usize {
        self.context.state().common.times_received(batch_id)
    }
}

impl Drop for LedgerSim {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The panic hook has printed a panic already.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for LedgerSim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerSim")
            .field("address", &self.address)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}
