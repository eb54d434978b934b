//! The configured ledger: its adapter and its nodes.

mod context;
#[cfg(feature = "evm")]
mod evm;
#[cfg(feature = "evm")]
mod former_gas_admins;
#[cfg(feature = "evm")]
mod gas;
#[cfg(feature = "evm")]
mod gas_admins;
mod identity_reader;
mod key_file;
#[cfg(feature = "evm")]
mod payments;
mod sawtooth;
mod scabbard;

use std::sync::Arc;

use grid_batch_core::{Ledger, LedgerIdentity, StatusUrlResolver};
use grid_batch_store::Store;
use grid_batch_withdrawals::WithdrawalRules;

use super::{gas::GasMonitor, ledger_check::LedgerCheck};
use crate::{Config, LedgerConfig, OpenLedgerFn, StartError, config::Adapter};

pub use context::LedgerContext;
#[cfg(feature = "evm")]
pub(super) use evm::EvmChain;
pub(super) use identity_reader::IdentityReader;
pub(super) use scabbard::scabbard_client;

impl Config {
    /// The same configuration, whose store keeps the limits of what is scheduled from pools. Whatever
    /// schedules withdrawals opens its store with it.
    pub fn with_payment_limits(&self) -> Result<Self, StartError> {
        #[cfg_attr(not(feature = "evm"), expect(unused_mut))]
        let mut config = self.clone();
        #[cfg(feature = "evm")]
        {
            config.store.payment_limits = Arc::new(payments::limits(&self.evm)?);
        }
        Ok(config)
    }
}

/// The configured ledger, with what the server needs besides its adapter.
pub(super) struct ServerLedger {
    pub(super) ledger: Arc<dyn Ledger>,
    /// The rules of withdrawals, if the ledger has pools. It accepts no other batches then.
    pub(super) withdrawals: Option<Arc<dyn WithdrawalRules>>,
    /// Watches the gas price and the balances, if the ledger has gas.
    pub(super) gas: Option<Arc<dyn GasMonitor>>,
}

impl ServerLedger {
    fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, withdrawals: None, gas: None }
    }
}

/// Opens the adapter of a ledger over a store.
pub(super) type OpenFn<'a> = Box<dyn FnOnce(&Store) -> Result<ServerLedger, StartError> + 'a>;

/// Checks the settings of the configured ledger, and returns what opens its adapter.
pub(super) fn prepare(config: &Config) -> Result<OpenFn<'_>, StartError> {
    match config.adapter().ok_or_else(StartError::no_ledger_kind)? {
        Adapter::Sawtooth => sawtooth::prepare(config),
        Adapter::Scabbard => scabbard::prepare(config),
        #[cfg(feature = "evm")]
        Adapter::Evm => {
            let chain = EvmChain::new(config)?;
            Ok(Box::new(move |store| chain.with_store(store)))
        }
        Adapter::Registered(open) => {
            let nodes = config.ledger.shared_nodes()?;
            let ledger = open_registered(open, config, nodes.confirmed())?;
            Ok(Box::new(move |_| Ok(ServerLedger::new(ledger))))
        }
    }
}

/// The adapter of a ledger that a program has registered.
fn open_registered(
    open: OpenLedgerFn,
    config: &Config,
    nodes: Arc<dyn StatusUrlResolver>,
) -> Result<Arc<dyn Ledger>, StartError> {
    let ledger = open(&LedgerContext { config, nodes }).map_err(StartError::Adapter)?;
    match config.ledger.facts == Some(ledger.facts()) {
        true => Ok(ledger),
        false => Err(StartError::part(
            "the adapter declares other facts than its type; return the same from both",
        )),
    }
}

/// The names of the gas admins of an EVM chain and their addresses, whose keys are read for this.
pub fn gas_admin_addresses(config: &Config) -> Result<Vec<(String, String)>, StartError> {
    #[cfg(feature = "evm")]
    {
        let signers = gas_admins::gas_admin_signers(config)?.into_iter();
        Ok(signers.map(|(name, signer)| (name.to_owned(), signer.address().to_string())).collect())
    }
    #[cfg(not(feature = "evm"))]
    {
        Err(StartError::NotBuilt { kind: config.ledger.kind.unwrap_or_default() })
    }
}

/// Keeps the server away from nodes of other ledgers.
pub(super) fn check(config: &Config) -> Result<LedgerCheck, StartError> {
    require_name(config)?;
    let (pool, answer_limit) = (config.ledger.http.nodes.clone(), config.submit.sending_limit / 2);
    Ok(LedgerCheck::new(configured_ledger(config)?, pool, answer_limit))
}

/// An error if the ledger must have a name and has none.
fn require_name(config: &Config) -> Result<(), StartError> {
    match config.ledger.lacks_name() {
        true => Err(StartError::Missing { name: "ledger.name", rule: LedgerConfig::NAME_RULE }),
        false => Ok(()),
    }
}

/// The ledger of the settings, as far as they identify it.
fn configured_ledger(config: &Config) -> Result<LedgerIdentity, StartError> {
    let identity = config.ledger.identity().ok_or_else(StartError::no_ledger_kind)?;
    #[cfg(feature = "evm")]
    if matches!(config.adapter(), Some(Adapter::Evm)) {
        let id = grid_batch_evm::EvmIdentityReader::id_of_chain(config.evm.chain_id);
        return Ok(LedgerIdentity { id, ..identity });
    }
    Ok(identity)
}
