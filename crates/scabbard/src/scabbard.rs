use std::{fmt, sync::Arc};

use grid_batch_core::StatusUrlResolver;
use grid_batch_protocol::CylinderToken;

use crate::{
    ScabbardError, ScabbardEvents, ScabbardEvidenceReader, ScabbardOptions, ScabbardSender,
    ScabbardStatusReader, shared::Shared,
};

/// One ledger's adapter: makes its four parts, which share connections and what they know.
///
/// What one part learns another needs: use the parts of one `Scabbard` together, and make it anew
/// only where its memory may be lost.
#[derive(Clone)]
pub struct Scabbard(Arc<Shared>);

impl Scabbard {
    /// The adapter of the ledger with these nodes, which knows itself by this token.
    ///
    /// Only a batch's node is asked for its status, as `nodes` says; all of them for evidence. An
    /// event socket is opened at the first that opens one.
    pub fn new(
        token: &CylinderToken,
        nodes: Arc<dyn StatusUrlResolver>,
        options: ScabbardOptions,
    ) -> Result<Self, ScabbardError> {
        options.check()?;
        Ok(Self(Arc::new(Shared::new(token, nodes, options)?)))
    }

    /// Sends batches.
    pub fn sender(&self) -> ScabbardSender {
        ScabbardSender(Arc::clone(&self.0))
    }

    /// Asks for statuses.
    pub fn status_reader(&self) -> ScabbardStatusReader {
        ScabbardStatusReader(Arc::clone(&self.0))
    }

    /// Looks for proof.
    pub fn evidence_reader(&self) -> ScabbardEvidenceReader {
        ScabbardEvidenceReader(Arc::clone(&self.0))
    }

    /// Listens to services.
    pub fn events(&self) -> ScabbardEvents {
        ScabbardEvents(Arc::clone(&self.0))
    }
}

impl fmt::Debug for Scabbard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scabbard").field("nodes", &self.0.nodes).finish_non_exhaustive()
    }
}
