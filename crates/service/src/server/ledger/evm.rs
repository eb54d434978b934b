//! Pools on an EVM chain.

use std::{sync::Arc, time::Duration};

use grid_batch_evm::{
    ChainSettings, Evm, EvmAccountCheck, EvmConnections, EvmIdentityReader, EvmSettings, EvmSetup,
    EvmSetupError, PoolRules, SETTINGS, facts, warn_of_former_gas_admins,
};
use grid_batch_nodes::NodePool;
use grid_batch_store::Store;
use grid_batch_withdrawals::SigningStore;

use super::{
    OpenFn, ServerLedger,
    built_in::{BuiltIn, IdentityFn},
};
use crate::{Config, LedgerType, PollConfig, StartError, config::Adapter};

/// A balance that pays for fewer withdrawals is low.
const LOW_BALANCE: u64 = 20;

/// An EVM chain.
pub(super) const TYPE: LedgerType = LedgerType {
    settings: SETTINGS,
    check_settings: |settings| EvmSettings::new(settings).map(drop),
    ..LedgerType::with_adapter(
        "evm",
        |settings| Ok(facts(ChainSettings::read(settings)?.resend_after)),
        Adapter::BuiltIn(BuiltIn { prepare, identity, id: Some(configured_id), service: None }),
    )
};

fn prepare(config: &Config) -> Result<OpenFn<'_>, StartError> {
    let chain = EvmChain::new(config)?;
    Ok(Box::new(move |store| chain.with_store(store)))
}

fn identity(config: &Config) -> Result<IdentityFn, StartError> {
    let reader = Arc::new(EvmIdentityReader::new(&config.http_options())?);
    Ok(Box::new(move |node| {
        let reader = Arc::clone(&reader);
        Box::pin(async move { reader.read_id(&node).await })
    }))
}

fn configured_id(config: &Config) -> Result<String, StartError> {
    Ok(EvmIdentityReader::id_of_chain(config.evm_settings()?.chain.chain_id))
}

impl Config {
    /// The settings of the chain and its pools.
    pub(super) fn evm_settings(&self) -> Result<EvmSettings, StartError> {
        EvmSettings::new(&self.settings).map_err(StartError::part)
    }
}

/// The names of the gas admins of an EVM chain and their addresses, whose keys are read for this.
pub fn gas_admin_addresses(config: &Config) -> Result<Vec<(String, String)>, StartError> {
    Ok(config.evm_settings()?.gas_admin_addresses(&config.signer_http_options())?)
}

impl From<EvmSetupError> for StartError {
    fn from(error: EvmSetupError) -> Self {
        match error {
            EvmSetupError::Missing { name, rule } => Self::Missing { name, rule },
            EvmSetupError::Setting { name, message } => Self::Setting { name, message },
            EvmSetupError::Key(error) => Self::Key(error),
            EvmSetupError::Http(error) => Self::Http(error),
            error => Self::part(error),
        }
    }
}

/// The parts of the adapter that need no store.
pub(in crate::server) struct EvmChain {
    nodes: NodePool,
    setup: EvmSetup,
    balance_interval: Duration,
}

impl EvmChain {
    pub(in crate::server) fn new(config: &Config) -> Result<Self, StartError> {
        let nodes = config.shared_nodes()?;
        let settings = config.evm_settings()?;
        let connections = EvmConnections {
            nodes: config.ledger.urls.len(),
            requests: PollConfig::CONNECTIONS,
            http: config.http_options(),
            signer_http: config.signer_http_options(),
            oracle_http: config.oracle_http_options(),
            clock: config.clock(),
        };
        let setup = EvmSetup::new(&settings, connections)?;
        Ok(Self { nodes, setup, balance_interval: settings.balance_interval() })
    }

    /// The ledger, which stores signed transactions in this store.
    pub(in crate::server) fn with_store(self, store: &Store) -> Result<ServerLedger, StartError> {
        let Self { nodes, setup, balance_interval } = self;
        let EvmSetup { rules, calls, options, watched } = setup;
        let open = store.open_withdrawals().map_err(StartError::part)?;
        warn_of_former_gas_admins(&open, &rules);
        let signing: Arc<dyn SigningStore> = Arc::new(store.clone());
        let evm = Evm::new(options, signing, nodes.confirmed());
        let evm = evm.map_err(StartError::part)?;
        let watch = Arc::new(evm.gas_watch(watched, LOW_BALANCE, balance_interval));
        Ok(ServerLedger {
            withdrawals: Some(Arc::new(rules)),
            calls: Some(Arc::new(calls)),
            gas: Some(watch),
            ..ServerLedger::new(Arc::new(evm))
        })
    }
}

impl EvmChain {
    /// The rules of the pools, and the check of accounts with all configured nodes.
    pub(in crate::server) fn with_account_check(
        self,
        store: &Store,
    ) -> Result<(PoolRules, EvmAccountCheck), StartError> {
        let Self { nodes, setup: EvmSetup { rules, options, .. }, .. } = self;
        let evm = Evm::new(options, Arc::new(store.clone()), Arc::new(nodes));
        Ok((rules, evm.map_err(StartError::part)?.account_check()))
    }
}
