use std::{fmt, net::SocketAddr, sync::Arc, thread::JoinHandle};

use grid_batch_core::{HeaderId, ServiceId, ServiceScopeId};
use grid_batch_protocol::VerifiedBatch;
use tokio::sync::oneshot;

use crate::{Audit, Entry, Fault, LedgerSimBuilder, When, audit, shared::Shared};

/// A simulated ledger that serves on a port of this machine until it is dropped.
///
/// It has a thread of its own, so it can be used from anywhere, and all its methods are done when
/// they return. What was due before a call is not changed by it.
pub struct LedgerSim {
    shared: Arc<Shared>,
    address: SocketAddr,
    seed: u64,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LedgerSim {
    /// A Sawtooth validator behind its REST API.
    pub fn sawtooth() -> LedgerSimBuilder {
        LedgerSimBuilder::sawtooth()
    }

    /// A Splinter node with these Scabbard services.
    pub fn scabbard(services: impl IntoIterator<Item = ServiceScopeId>) -> LedgerSimBuilder {
        LedgerSimBuilder::scabbard(services.into_iter().collect())
    }

    pub(crate) fn new(
        shared: Arc<Shared>,
        address: SocketAddr,
        seed: u64,
        stop: oneshot::Sender<()>,
        thread: JoinHandle<()>,
    ) -> Self {
        Self { shared, address, seed, stop: Some(stop), thread: Some(thread) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The seed of all that chance decides here.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Switches a fault on, or with [`When::Never`] off. The last word counts.
    pub fn inject(&self, fault: Fault, when: When) {
        self.shared.world_now().common.faults.set(fault, when);
    }

    /// Switches all faults off, those of the builder included. What is frozen stays frozen.
    pub fn heal(&self) {
        self.shared.world_now().common.faults.clear();
    }

    /// Finds a batch invalid, with this message, whenever `rule` gives one. It takes the place of
    /// the rule before.
    pub fn refuse(&self, rule: impl Fn(&VerifiedBatch) -> Option<String> + Send + Sync + 'static) {
        self.shared.world_now().common.rule = Some(Arc::new(rule));
    }

    /// From now on connections are accepted and requests read, and nothing is answered. Batches
    /// that were accepted before are committed all the same.
    pub fn freeze(&self) {
        self.shared.set_frozen(true);
    }

    /// Answers again, and first deals with what was read meanwhile, whether or not its sender still
    /// waits.
    pub fn thaw(&self) {
        self.shared.set_frozen(false);
    }

    /// Restarts the ledger: connections are reset, and what it had only in memory is lost. On
    /// Sawtooth that is all that is not committed; on Scabbard also what it knew of committed ones.
    pub fn restart(&self) {
        self.shared.restart();
    }

    /// All that the ledger has done until now, in order.
    pub fn record(&self) -> Vec<Entry> {
        self.shared.world_now().common.record.entries().to_vec()
    }

    /// Compares the record with what was promised, as [`audit()`] does.
    pub fn audit(&self, promised: &[(ServiceId, HeaderId)]) -> Audit {
        audit(self.shared.world_now().common.record.entries(), promised)
    }

    /// How often a batch was sent here since the start, whatever was answered. What was reset before
    /// it was accepted does not count.
    pub fn times_received(&self, batch_id: &HeaderId) -> usize {
        self.shared.world().common.times_received(batch_id)
    }
}

impl Drop for LedgerSim {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been printed already; there is nobody to tell here.
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
