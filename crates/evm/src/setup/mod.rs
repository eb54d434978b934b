//! Reads the keys and converts the settings to what an adapter is made from.

mod error;
mod former_gas_admins;
mod gas_admins;
mod options;
mod payments;
mod pools;

use std::sync::Arc;

use grid_batch_core::Clock;
use grid_batch_http::HttpOptions;

pub use error::EvmSetupError;
pub use former_gas_admins::warn_of_former_gas_admins;

use crate::{
    calls::AccountRules,
    gas::WatchedAccount,
    options::EvmOptions,
    rules::PoolRules,
    settings::{EvmSettings, PoolSettings},
    signer::TransactionSigner,
};

/// The setting that names the pools.
const POOLS: &str = PoolSettings::gas_admin.name;

/// The gas admins and pools of the settings, with keys, and the options of an adapter for them.
pub struct EvmSetup {
    /// The options of the adapter.
    pub options: EvmOptions,
    /// The rules of the pools.
    pub rules: PoolRules,
    /// The rules of other transactions of the gas admins.
    pub calls: AccountRules,
    /// The gas admins with their pools.
    pub watched: Vec<WatchedAccount>,
}

/// The gas admins with what they may send beside withdrawals.
fn accounts(
    settings: &EvmSettings,
    watched: &[WatchedAccount],
    rules: &PoolRules,
) -> Result<AccountRules, EvmSetupError> {
    let all = &settings.gas_admins.may_send;
    let is_unknown = |name: &&String| !watched.iter().any(|admin| admin.name == **name);
    if let Some(name) = all.iter().map(|(name, _)| name).find(is_unknown) {
        return Err(EvmSetupError::UnknownGasAdmin(name.clone()));
    }
    Ok(watched.iter().fold(AccountRules::new(rules.clone()), |calls, admin| {
        let own = all.iter().filter(|(name, _)| *name == admin.name);
        let may_send = own.flat_map(|(_, rules)| rules.clone()).collect();
        calls.with_account(&admin.name, admin.account.clone(), may_send)
    }))
}

/// How requests to nodes are made.
#[derive(Debug, Clone)]
pub struct EvmConnections {
    /// How many nodes there are.
    pub nodes: usize,
    /// Limit on the number of status requests in flight.
    pub requests: usize,
    /// Options of the HTTP client for nodes.
    pub http: HttpOptions,
    /// Options of the HTTP clients for remote signers.
    pub signer_http: HttpOptions,
    /// Options of the HTTP client for the gas price oracle.
    pub oracle_http: HttpOptions,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl EvmSetup {
    /// Reads the keys.
    pub fn new(settings: &EvmSettings, connections: EvmConnections) -> Result<Self, EvmSetupError> {
        let (names, signers): (Vec<&str>, Vec<Arc<dyn TransactionSigner>>) =
            gas_admins::signers(settings, &connections.signer_http)?.into_iter().unzip();
        let rules = pools::rules(settings, &names, &signers)?;
        let beneficiaries = payments::beneficiaries(settings, &rules)?;
        let rules = rules.with_beneficiaries(beneficiaries);
        let watched = pools::watched_accounts(settings, &names, &signers)?;
        let calls = accounts(settings, &watched, &rules)?;
        let mut options = options::options(settings, connections, signers, &rules)?;
        options.calls = calls.clone();
        Ok(Self { options, rules, calls, watched })
    }
}
