use std::{fmt, net::SocketAddr, sync::Arc, thread::JoinHandle};

use grid_batch_core::{HeaderId, ServiceId, ServiceScopeId};
use grid_batch_protocol::VerifiedBatch;
use tokio::sync::oneshot;

use crate::{
    Audit, Entry, Fault, LedgerSimBuilder, WebSocketCounts, When, audit,
    sawtooth::SharedChain,
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
    chain: SharedChain,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
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
        chain: SharedChain,
        (stop, thread): (oneshot::Sender<()>, JoinHandle<()>),
    ) -> Self {
        Self { context, address, seed, chain, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn chain(&self) -> SharedChain {
        self.chain.clone()
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
    /// batches that it has accepted.
    pub fn freeze(&self) {
        self.context.set_frozen(true);
    }

    /// Answers again. Requests that were read in the meantime are handled first, even if their
    /// clients have disconnected.
    pub fn thaw(&self) {
        self.context.set_frozen(false);
    }

    /// Handles the submissions that [`Fault::LateArrival`] keeps, now.
    pub fn deliver_late(&self) {
        self.context.deliver_late();
    }

    /// Restarts the ledger: connections are reset, and what it had only in memory is lost. Sawtooth
    /// loses all that is not committed; Scabbard also loses the statuses of committed batches.
    pub fn restart(&self) {
        self.context.restart();
    }

    /// Creates another Scabbard service on the node.
    pub fn add_service(&self, service: ServiceScopeId) {
        let mut state = self.context.advanced_state();
        let LedgerState { ledger, common } = &mut *state;
        ledger.add_service(service, &common.record);
    }

    /// Restarts Sawtooth's REST API and not its validator: connections are reset, nothing else is lost,
    /// and events are sent again.
    pub fn restart_interface(&self) {
        self.context.restart_interface();
    }

    /// Sends no more events to any client, as a node of Sawtooth after a subscriber has died: websockets
    /// stay open, pings are answered, and a new client gets the block that was the newest then. It
    /// ends with a restart of the interface or the ledger.
    pub fn stop_sending_events(&self) {
        self.context.advanced_state().common.events.stop_sending();
    }

    /// How many event websockets are open, and how others ended until now.
    pub fn websockets(&self) -> WebSocketCounts {
        self.context.state().common.events.websockets()
    }

    /// All executions until now, in order.
    pub fn record(&self) -> Vec<Entry> {
        self.context.advanced_state().common.record.entries().to_vec()
    }

    /// Compares the record with the promised batches, as [`audit()`] does.
    pub fn audit(&self, promised: &[(ServiceId, HeaderId)]) -> Audit {
        audit(self.context.advanced_state().common.record.entries(), promised)
    }

    /// How often a batch was received since the start, with any response. Requests that were reset
    /// before they were handled do not count.
    pub fn times_received(&self, batch_id: &HeaderId) -> usize {
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
