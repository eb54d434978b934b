use std::sync::Arc;

use grid_batch_core::StatusUrlResolver;
use grid_batch_withdrawals::SigningStore;

use crate::{EvmError, EvmEvidenceReader, EvmOptions, EvmSender, EvmStatusReader, shared::Shared};

/// One chain's adapter, of which each part can be had by itself, and on a runtime of its own.
///
/// The parts know of each other by the store alone: they may be in different processes.
#[derive(Debug, Clone)]
pub struct Evm(Arc<Shared>);

impl Evm {
    /// The adapter of the chain with these nodes, which keeps in `store` what it signs.
    pub fn new(
        options: EvmOptions,
        store: Arc<dyn SigningStore>,
        nodes: Arc<dyn StatusUrlResolver>,
    ) -> Result<Self, EvmError> {
        options.check()?;
        Ok(Self(Arc::new(Shared::new(options, store, nodes)?)))
    }

    /// Signs withdrawals and sends them.
    pub fn sender(&self) -> EvmSender {
        EvmSender::new(Arc::clone(&self.0))
    }

    /// Reads what became of withdrawals.
    pub fn status_reader(&self) -> EvmStatusReader {
        EvmStatusReader(Arc::clone(&self.0))
    }

    /// Says which withdrawals are to be sent again.
    pub fn evidence_reader(&self) -> EvmEvidenceReader {
        EvmEvidenceReader(Arc::clone(&self.0))
    }
}
