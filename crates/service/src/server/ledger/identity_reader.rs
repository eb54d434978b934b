use std::sync::Arc;

use grid_batch_core::{BatchResult, Ledger};
#[cfg(feature = "evm")]
use grid_batch_evm::EvmIdentityReader;
use grid_batch_nodes::NodePool;
use grid_batch_sawtooth::{Sawtooth, SawtoothOptions};

use super::{open_registered, require_name};
use crate::{Config, StartError, config::Adapter};

/// Asks nodes which ledger they belong to, without a store or keys.
pub(in crate::server) enum IdentityReader {
    Ledger(Arc<dyn Ledger>),
    #[cfg(feature = "evm")]
    Evm(EvmIdentityReader),
    /// The nodes tell nothing.
    Silent,
}

impl IdentityReader {
    pub(in crate::server) fn new(config: &Config) -> Result<Self, StartError> {
        require_name(config)?;
        let http = config.ledger.http.clone();
        let nodes = || Arc::new(NodePool::new(config.ledger.nodes()));
        match config.adapter().ok_or_else(StartError::no_ledger_kind)? {
            Adapter::Sawtooth => {
                let options = SawtoothOptions { http, ..SawtoothOptions::default() };
                Ok(Self::Ledger(Arc::new(Sawtooth::new(options, nodes())?)))
            }
            Adapter::Scabbard => Ok(Self::Silent),
            #[cfg(feature = "evm")]
            Adapter::Evm => Ok(Self::Evm(EvmIdentityReader::new(&http)?)),
            Adapter::Registered(open) => Ok(Self::Ledger(open_registered(open, config, nodes())?)),
        }
    }

    /// What the node at this URL tells.
    pub(in crate::server) async fn read(&self, node: &str) -> BatchResult<String> {
        match self {
            Self::Ledger(ledger) => ledger.identity(node).await,
            #[cfg(feature = "evm")]
            Self::Evm(reader) => reader.read_id(node).await,
            Self::Silent => Ok(String::new()),
        }
    }
}
