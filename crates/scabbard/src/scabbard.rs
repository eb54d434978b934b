use std::{fmt, sync::Arc};

use grid_batch_core::{
    BatchResult, CommitHistory, ServiceHistory, ServiceScopeId, StatusUrlResolver,
};
use grid_batch_protocol::CylinderToken;

use crate::{
    NewBatchRules, ScabbardError, ScabbardEvents, ScabbardEvidenceReader, ScabbardOptions,
    ScabbardSender, ScabbardServiceCheck, ScabbardStateRoots, ScabbardStatusReader,
    context::ScabbardContext,
};

/// The Scabbard adapter of one ledger: it creates the sender, the readers and the event source.
///
/// The four parts share connections and what they have observed. Use the parts of one `Scabbard`
/// together: a new `Scabbard` starts without observations.
#[derive(Clone)]
pub struct Scabbard(Arc<ScabbardContext>);

impl Scabbard {
    /// Creates the adapter of the ledger with these nodes, authorized by this token.
    ///
    /// Statuses are read from the first available node that `nodes` returns for a batch, evidence
    /// from all of them. Events come from the first node that opens a websocket.
    pub fn new(
        token: &CylinderToken,
        nodes: Arc<dyn StatusUrlResolver>,
        options: ScabbardOptions,
    ) -> Result<Self, ScabbardError> {
        options.check()?;
        Ok(Self(Arc::new(ScabbardContext::new(token, nodes, options)?)))
    }

    /// Sets where to find out which services had committed batches before this process started. A node that starts
    /// denies services that it has not started yet.
    #[must_use]
    pub fn with_commit_history(self, history: Arc<dyn CommitHistory>) -> Self {
        self.0.unknown_services.set_history(history);
        self
    }

    /// Sets where to find out which batches services have committed. Without it, a batch that no node has counts as
    /// new.
    #[must_use]
    pub fn with_service_history(
        self,
        history: Arc<dyn ServiceHistory>,
        rules: NewBatchRules,
    ) -> Self {
        history.refuse_past_transactions();
        // Both are set once.
        let _ = self.0.history_of_services.set(history);
        let _ = self.0.rules.set(rules);
        self
    }

    /// Whether a node has a service, asked once.
    pub async fn has_service(&self, node: &str, service: &ServiceScopeId) -> BatchResult<bool> {
        self.0.has_service(node, service).await
    }

    /// Submits batches.
    pub fn sender(&self) -> ScabbardSender {
        ScabbardSender(Arc::clone(&self.0))
    }

    /// Reads statuses.
    pub fn status_reader(&self) -> ScabbardStatusReader {
        ScabbardStatusReader(Arc::clone(&self.0))
    }

    /// Looks for evidence.
    pub fn evidence_reader(&self) -> ScabbardEvidenceReader {
        ScabbardEvidenceReader(Arc::clone(&self.0))
    }

    /// Tells which services the nodes do not have.
    pub fn service_check(&self) -> ScabbardServiceCheck {
        ScabbardServiceCheck(Arc::clone(&self.0))
    }

    /// Tells where the nodes of a circuit have different states.
    pub fn state_roots(&self) -> ScabbardStateRoots {
        ScabbardStateRoots(Arc::clone(&self.0))
    }

    /// Subscribes to the events of services.
    pub fn events(&self) -> ScabbardEvents {
        ScabbardEvents(Arc::clone(&self.0))
    }
}

impl fmt::Debug for Scabbard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scabbard").field("nodes", &self.0.nodes).finish_non_exhaustive()
    }
}
