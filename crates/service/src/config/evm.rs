use std::{collections::BTreeSet, fmt, num::NonZero, path::PathBuf, time::Duration};

use super::{
    ConfigError,
    layers::Layers,
    value::{OracleUrl, Pair, SettingValue, looks_like_key},
};

/// The pools of an EVM chain, their gas admins, and the price of gas.
///
/// Addresses and prices are text here; the ledger's adapter parses them.
#[derive(Clone)]
pub struct EvmConfig {
    /// The chain's id.
    pub chain_id: u64,
    /// The names of the gas admins, and where their keys are.
    pub gas_admins: Vec<(String, KeySource)>,
    /// The pools' addresses, and the names of their gas admins.
    pub pools: Vec<(String, String)>,
    /// The gas price, in gwei, from which on withdrawals are parked.
    pub maximum_gas_price: String,
    /// Other maximum gas prices, by the pool's address.
    pub pool_maximum_gas_price: Vec<(String, String)>,
    /// The URL of a gas price oracle.
    pub oracle_url: Option<String>,
    /// The JSON pointer to the price in the oracle's answer.
    pub oracle_field: String,
    /// Ask the oracle first, and the node only if that fails.
    pub oracle_first: bool,
    /// How often the gate of parked withdrawals is checked.
    pub gate_interval: Duration,
    /// The confirmations after which a withdrawal is final.
    pub confirmations: u64,
    /// How long a transaction may be not mined before it is sent again.
    pub resend_after: Duration,
}

/// Where a secret key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// In a file of its own.
    File(PathBuf),
    /// In an environment variable.
    Variable(String),
}

impl EvmConfig {
    pub(super) fn from_layers(layers: &Layers) -> Result<Self, ConfigError> {
        let pairs = |name: &str| -> Result<Vec<(String, String)>, ConfigError> {
            let pairs: Vec<Pair> = layers.get(name)?;
            Ok(pairs.into_iter().map(|Pair(left, right)| (left, right)).collect())
        };
        let gas_admins: Vec<GasAdmin> = layers.get("evm.gas_admins")?;
        Ok(Self {
            chain_id: layers.get::<NonZero<u64>>("evm.chain_id")?.get(),
            gas_admins: gas_admins.into_iter().map(|GasAdmin(name, key)| (name, key)).collect(),
            pools: pairs("evm.pools")?,
            maximum_gas_price: layers.get("evm.maximum_gas_price")?,
            pool_maximum_gas_price: pairs("evm.pool_maximum_gas_price")?,
            oracle_url: layers.get::<OracleUrl>("evm.oracle_url")?.0,
            oracle_field: layers.get("evm.oracle_field")?,
            oracle_first: layers.get("evm.oracle_first")?,
            gate_interval: layers.get("evm.gate_interval")?,
            confirmations: layers.get::<NonZero<u64>>("evm.confirmations")?.get(),
            resend_after: layers.get("evm.resend_after")?,
        })
    }

    /// Names of gas admins must be unique, and each pool's gas admin must be configured.
    pub(super) fn check(&self, layers: &Layers) -> Result<(), ConfigError> {
        let mut names = BTreeSet::new();
        if let Some((name, _)) = self.gas_admins.iter().find(|(name, _)| !names.insert(name)) {
            let rule = format!("the gas admin {name} is listed twice");
            return Err(layers.conflict("evm.gas_admins", rule));
        }
        if let Some((pool, name)) = self.pools.iter().find(|(_, name)| !names.contains(name)) {
            let rule =
                format!("the pool {pool} has the gas admin {name}, which evm.gas_admins lacks");
            return Err(layers.conflict("evm.pools", rule));
        }
        Ok(())
    }
}

impl fmt::Debug for EvmConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvmConfig")
            .field("chain_id", &self.chain_id)
            .field("gas_admins", &self.gas_admins)
            .field("pools", &self.pools)
            .field("maximum_gas_price", &self.maximum_gas_price)
            .field("confirmations", &self.confirmations)
            .finish_non_exhaustive()
    }
}

/// The name of a gas admin, and where its key is.
struct GasAdmin(String, KeySource);

impl SettingValue for GasAdmin {
    fn parse(text: &str) -> Result<Self, String> {
        let Pair(name, key) = Pair::parse(text)?;
        Ok(Self(name, KeySource::parse(&key)?))
    }

    /// Hides a key that was given by mistake instead of its file.
    fn redacted(text: &str) -> String {
        match text.split_once('=') {
            Some((name, key)) if looks_like_key(key.trim()) => format!("\"{name}=***\""),
            None if looks_like_key(text) => "\"***\"".to_owned(),
            _ => format!("{text:?}"),
        }
    }
}
