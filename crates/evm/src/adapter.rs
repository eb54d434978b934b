use std::sync::Arc;

use grid_batch_core::StatusUrlResolver;
use grid_batch_withdrawals::SigningStore;

use crate::{
    context::EvmContext,
    evidence::EvmEvidenceReader,
    follow::EvmStatusReader,
    gas::{GasWatch, WatchedAccount},
    heads::EvmEvents,
    options::{EvmError, EvmOptions},
    send::EvmSender,
    settle::EvmAccountCheck,
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

    /// Watches the gas price and the balances of these accounts. A balance is low if it pays for fewer
    /// withdrawals than `low_balance`.
    pub fn gas_watch(&self, accounts: Vec<WatchedAccount>, low_balance: u64) -> GasWatch {
        GasWatch::new(Arc::clone(&self.0), accounts, low_balance)
    }

    /// Reads the statuses of withdrawals from the chain.
    pub fn status_reader(&self) -> EvmStatusReader {
        EvmStatusReader(Arc::clone(&self.0))
    }

    /// Finds out whether everything that an account has sent is stored.
    pub fn account_check(&self) -> EvmAccountCheck {
        EvmAccountCheck(Arc::clone(&self.0))
    }

    /// Finds evidence that a withdrawal has to be sent again, or must not be.
    pub fn evidence_reader(&self) -> EvmEvidenceReader {
        EvmEvidenceReader(Arc::clone(&self.0))
    }

    /// Tells when to ask about withdrawals: at each new block, and when one was sent.
    pub fn events(&self) -> EvmEvents {
        EvmEvents::new(Arc::clone(&self.0))
    }
}
