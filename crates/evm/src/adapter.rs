use std::sync::Arc;

use grid_batch_core::StatusUrlResolver;
use grid_batch_withdrawals::SigningStore;

use crate::{
    context::EvmContext,
    evidence::EvmEvidenceReader,
    follow::EvmStatusReader,
    funds::AccountsWithoutFunds,
    options::{EvmError, EvmOptions},
    send::EvmSender,
};

/// The adapter of one chain.
///
/// Its sender and readers can be used separately, each on a runtime of its own. They communicate
/// through the store only, so they may also run in different processes.
#[derive(Debug, Clone)]
pub struct Evm(Arc<EvmContext>);

impl Evm {
    /// The adapter of the chain with these nodes. `store` keeps what it signs.
    pub fn new(
        options: EvmOptions,
        store: Arc<dyn SigningStore>,
        nodes: Arc<dyn StatusUrlResolver>,
    ) -> Result<Self, EvmError> {
        options.check()?;
        Ok(Self(Arc::new(EvmContext::new(options, store, nodes)?)))
    }

    /// Signs withdrawals and sends them.
    pub fn sender(&self) -> EvmSender {
        EvmSender::new(Arc::clone(&self.0))
    }

    /// The accounts that could not pay for the gas when it was last needed.
    pub fn accounts_without_funds(&self) -> AccountsWithoutFunds {
        self.0.without_funds.clone()
    }

    /// Reads the statuses of withdrawals from the chain.
    pub fn status_reader(&self) -> EvmStatusReader {
        EvmStatusReader(Arc::clone(&self.0))
    }

    /// Finds evidence that a withdrawal has to be sent again, or must not be.
    pub fn evidence_reader(&self) -> EvmEvidenceReader {
        EvmEvidenceReader(Arc::clone(&self.0))
    }
}
