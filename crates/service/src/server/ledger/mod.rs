//! The configured ledger: its adapter and its nodes.

mod built_in;
mod context;
#[cfg(feature = "evm")]
mod evm;
#[cfg(feature = "sawtooth")]
mod sawtooth;
#[cfg(feature = "scabbard")]
mod scabbard;

use std::sync::Arc;

use grid_batch_core::ledger::{Ledger, LedgerIdentity};
use grid_batch_ledger_check::LedgerCheck;
use grid_batch_nodes::{NodePool, StatusUrlResolver};
use grid_batch_store::Store;
use grid_batch_withdrawals::GasMonitor;
#[cfg(feature = "evm")]
use grid_batch_withdrawals::{CallRules, WithdrawalRules};

use crate::{Config, LedgerConfig, LedgerType, OpenLedgerFn, StartError, config::Adapter};

pub(crate) use built_in::BuiltIn;
pub(super) use built_in::{IdentityFn, ServiceFn};
pub use context::LedgerContext;
#[cfg(feature = "evm")]
pub(super) use evm::EvmChain;
#[cfg(feature = "evm")]
pub use evm::gas_admin_addresses;

/// The ledgers whose adapters are compiled in.
pub(crate) const BUILT_IN_LEDGERS: &[LedgerType] = &[
    #[cfg(feature = "sawtooth")]
    sawtooth::TYPE,
    #[cfg(feature = "scabbard")]
    scabbard::TYPE,
    #[cfg(feature = "evm")]
    evm::TYPE,
];

impl Config {
    /// The same configuration, whose store keeps the limits of what is scheduled from pools. Whatever
    /// schedules withdrawals opens its store with it.
    pub fn with_payment_limits(&self) -> Result<Self, StartError> {
        #[cfg_attr(not(feature = "evm"), expect(unused_mut))]
        let mut config = self.clone();
        #[cfg(feature = "evm")]
        {
            config.payment_limits = Arc::new(config.evm_settings()?.payment_limits()?);
        }
        Ok(config)
    }

    /// Whether the settings name pools.
    pub fn has_pools(&self) -> bool {
        let pools = self.settings.table().named("pools.*.gas_admin");
        pools.is_some_and(|pools| self.settings.entries(pools).next().is_some())
    }
}

/// The configured ledger, with what the server needs besides its adapter.
pub(super) struct ServerLedger {
    pub(super) ledger: Arc<dyn Ledger>,
    /// The rules of withdrawals, if the ledger has pools. It accepts no other batches then.
    #[cfg(feature = "evm")]
    pub(super) withdrawals: Option<Arc<dyn WithdrawalRules>>,
    /// The rules of other transactions of its accounts.
    #[cfg(feature = "evm")]
    pub(super) calls: Option<Arc<dyn CallRules>>,
    /// Watches the gas price and the balances, if the ledger has gas.
    pub(super) gas: Option<Arc<dyn GasMonitor>>,
}

impl ServerLedger {
    fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self {
            ledger,
            #[cfg(feature = "evm")]
            withdrawals: None,
            #[cfg(feature = "evm")]
            calls: None,
            gas: None,
        }
    }
}

/// Opens the adapter of a ledger over a store.
pub(super) type OpenFn<'a> = Box<dyn FnOnce(&Store) -> Result<ServerLedger, StartError> + 'a>;

/// Checks the settings of the configured ledger, and returns what opens its adapter.
pub(super) fn prepare(config: &Config) -> Result<OpenFn<'_>, StartError> {
    match adapter(config)? {
        Adapter::BuiltIn(built_in) => (built_in.prepare)(config),
        Adapter::Registered(open) => {
            let nodes = config.shared_nodes()?;
            let ledger = open_registered(open, config, nodes.confirmed())?;
            Ok(Box::new(move |_| Ok(ServerLedger::new(ledger))))
        }
    }
}

/// What asks nodes which ledger they belong to, without a store or keys.
pub(super) fn identity_reader(config: &Config) -> Result<IdentityFn, StartError> {
    require_name(config)?;
    match adapter(config)? {
        Adapter::BuiltIn(built_in) => (built_in.identity)(config),
        Adapter::Registered(open) => {
            Ok(built_in::identity_of(open_registered(open, config, all_nodes(config))?))
        }
    }
}

/// What asks nodes whether they have a service, if the ledger has an answer.
pub(super) fn service_reader(config: &Config) -> Result<Option<ServiceFn>, StartError> {
    match adapter(config)? {
        Adapter::BuiltIn(BuiltIn { service: Some(service), .. }) => service(config).map(Some),
        _ => Ok(None),
    }
}

fn adapter(config: &Config) -> Result<Adapter, StartError> {
    config.adapter().ok_or_else(StartError::no_ledger_kind)
}

/// All configured nodes, also those that have not confirmed their ledger.
fn all_nodes(config: &Config) -> Arc<NodePool> {
    Arc::new(NodePool::new(config.node_urls()))
}

/// The adapter of a ledger that a program has registered.
fn open_registered(
    open: OpenLedgerFn,
    config: &Config,
    nodes: Arc<dyn StatusUrlResolver>,
) -> Result<Arc<dyn Ledger>, StartError> {
    let ledger = open(&LedgerContext { config, nodes }).map_err(StartError::Adapter)?;
    if config.facts() == Some(ledger.facts()) {
        Ok(ledger)
    } else {
        Err(StartError::part(
            "the adapter declares other facts than its type; return the same from both",
        ))
    }
}

/// The names of the gas admins of an EVM chain and their addresses.
#[cfg(not(feature = "evm"))]
pub fn gas_admin_addresses(_: &Config) -> Result<Vec<(String, String)>, StartError> {
    let message = "this build has no adapter for evm; build it with --features evm".to_owned();
    Err(StartError::Setting { name: LedgerConfig::kind.name, message })
}

/// The check that nodes belong to the ledger of the database.
pub(super) fn check(config: &Config) -> Result<LedgerCheck, StartError> {
    require_name(config)?;
    let (pool, answer_limit) = (config.nodes.clone(), config.times().sending_limit / 2);
    Ok(LedgerCheck::new(configured_ledger(config)?, pool, answer_limit))
}

/// An error if the ledger must have a name and has none.
fn require_name(config: &Config) -> Result<(), StartError> {
    if config.lacks_ledger_name() {
        Err(StartError::Missing { name: LedgerConfig::name.name, rule: LedgerConfig::NAME_RULE })
    } else {
        Ok(())
    }
}

/// The ledger of the settings, as far as they identify it.
fn configured_ledger(config: &Config) -> Result<LedgerIdentity, StartError> {
    let identity = config.ledger_identity().ok_or_else(StartError::no_ledger_kind)?;
    match adapter(config)? {
        Adapter::BuiltIn(BuiltIn { id: Some(id), .. }) => {
            Ok(LedgerIdentity { id: id(config)?, ..identity })
        }
        _ => Ok(identity),
    }
}
