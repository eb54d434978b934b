use std::{collections::BTreeSet, fmt, num::NonZero, path::PathBuf, time::Duration};

use crate::config::{
    ConfigError,
    layers::Layers,
    value::{OracleUrl, Pair, Value, is_key},
};

/// The pools of an EVM chain, who pays for their gas, and at what price.
///
/// Addresses and prices are texts here: what they must be like, the chain's adapter knows.
#[derive(Clone)]
pub struct EvmConfig {
    /// The chain's id.
    pub chain_id: u64,
    /// The gas admins by name, and where their keys are.
    pub gas_admins: Vec<(String, KeySource)>,
    /// The pools' addresses, and the names of their gas admins.
    pub pools: Vec<(String, String)>,
    /// The price of gas, in gwei, at which withdrawals wait.
    pub maximum_gas_price: String,
    /// The same for single pools.
    pub pool_maximum_gas_price: Vec<(String, String)>,
    /// Where else the price is asked for.
    pub oracle_url: Option<String>,
    /// Where in its answer the price stands.
    pub oracle_field: String,
    /// It is asked before the node.
    pub oracle_first: bool,
    /// How often to look whether what is parked can go on.
    pub gate_interval: Duration,
    /// How many blocks deep a withdrawal must be to count.
    pub confirmations: u64,
    /// When what is not mined is sent again.
    pub resend_after: Duration,
}

/// Where a secret key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// In a file of its own.
    File(PathBuf),
    /// In a variable of the environment.
    Variable(String),
}

impl EvmConfig {
    pub(super) fn of(layers: &Layers) -> Result<Self, ConfigError> {
        let pairs = |name: &str| -> Result<Vec<(String, String)>, ConfigError> {
            let pairs: Vec<Pair> = layers.read(name)?;
            Ok(pairs.into_iter().map(|Pair(left, right)| (left, right)).collect())
        };
        let gas_admins: Vec<GasAdmin> = layers.read("evm.gas_admins")?;
        Ok(Self {
            chain_id: layers.read::<NonZero<u64>>("evm.chain_id")?.get(),
            gas_admins: gas_admins.into_iter().map(|GasAdmin(name, key)| (name, key)).collect(),
            pools: pairs("evm.pools")?,
            maximum_gas_price: layers.read("evm.maximum_gas_price")?,
            pool_maximum_gas_price: pairs("evm.pool_maximum_gas_price")?,
            oracle_url: layers.read::<OracleUrl>("evm.oracle_url")?.0,
            oracle_field: layers.read("evm.oracle_field")?,
            oracle_first: layers.read("evm.oracle_first")?,
            gate_interval: layers.read("evm.gate_interval")?,
            confirmations: layers.read::<NonZero<u64>>("evm.confirmations")?.get(),
            resend_after: layers.read("evm.resend_after")?,
        })
    }

    /// Every pool has a gas admin, and a name is that of one.
    pub(super) fn check(&self, layers: &Layers) -> Result<(), ConfigError> {
        let mut names = BTreeSet::new();
        if let Some((name, _)) = self.gas_admins.iter().find(|(name, _)| !names.insert(name)) {
            let rule = format!("the gas admin {name} stands there twice");
            return Err(layers.together("evm.gas_admins", rule));
        }
        if let Some((pool, name)) = self.pools.iter().find(|(_, name)| !names.contains(name)) {
            let rule = format!(
                "the pool {pool} has the gas admin {name}, of which evm.gas_admins says nothing"
            );
            return Err(layers.together("evm.pools", rule));
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

/// A gas admin by name, and where its key is.
struct GasAdmin(String, KeySource);

impl Value for GasAdmin {
    fn read(text: &str) -> Result<Self, String> {
        let Pair(name, key) = Pair::read(text)?;
        Ok(Self(name, KeySource::read(&key)?))
    }

    /// A key that was put here by mistake is still a secret.
    fn shown(text: &str) -> String {
        match text.split_once('=') {
            Some((name, key)) if is_key(key.trim()) => format!("\"{name}=***\""),
            None if is_key(text) => "\"***\"".to_owned(),
            _ => format!("{text:?}"),
        }
    }
}
