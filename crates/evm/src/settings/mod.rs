mod key_source;
mod table;

use std::{collections::BTreeSet, fmt, num::NonZero, time::Duration};

use grid_batch_settings::{ConfigError, Pair, SettingValues};

use key_source::{GasAdmin, KeystorePassword};

pub use key_source::{KeySource, PasswordSource};
pub use table::SETTINGS;

/// The pools of an EVM chain, their gas admins, and the price of gas.
///
/// The values of [`SETTINGS`]. Addresses and prices are text here.
#[derive(Clone)]
pub struct EvmSettings {
    /// The chain's id.
    pub chain_id: u64,
    /// The names of the gas admins, and where their keys are.
    pub gas_admins: Vec<(String, KeySource)>,
    /// The names of the gas admins with a keystore, and where its password is.
    pub keystore_passwords: Vec<(String, PasswordSource)>,
    /// The time limit of a request to a remote signer.
    pub signer_timeout: Duration,
    /// The pools' addresses, and the names of their gas admins.
    pub pools: Vec<(String, String)>,
    /// The gas price, in gwei, from which on withdrawals are parked.
    pub maximum_gas_price: String,
    /// Other maximum gas prices, by the pool's address.
    pub pool_maximum_gas_price: Vec<(String, String)>,
    /// The largest amounts of a withdrawal, by the pool's address.
    pub maximum_payment: Vec<(String, String)>,
    /// The largest sums of amounts in a day, by the pool's address.
    pub maximum_payments_per_day: Vec<(String, String)>,
    /// The beneficiaries that may be paid, with the pool's address or for all pools; empty for all.
    pub beneficiaries: Vec<(Option<String>, String)>,
    /// A balance that pays for fewer withdrawals is low.
    pub low_balance: u64,
    /// How often balances and the gas price are read.
    pub balance_interval: Duration,
    /// The highest tip, in gwei.
    pub maximum_tip: String,
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
    /// How many transactions of a gas admin may be sent and not mined.
    pub in_flight: usize,
    /// How long a transaction may be not mined before it is sent again.
    pub resend_after: Duration,
    /// How many nonces may be missing at the node.
    pub longest_gap: u64,
    /// How many nodes that are up to date must say that a pool refuses a withdrawal before it fails; 0
    /// for more than half of the nodes.
    pub agreeing_nodes: usize,
    /// The age of a node's latest block from which on the node is not up to date; `None` for any age.
    pub head_age_limit: Option<Duration>,
}

impl EvmSettings {
    /// Reads and checks them.
    pub fn new(values: &SettingValues) -> Result<Self, ConfigError> {
        let pairs = |name: &str| -> Result<Vec<(String, String)>, ConfigError> {
            let pairs: Vec<Pair> = values.get(name)?;
            Ok(pairs.into_iter().map(|Pair(left, right)| (left, right)).collect())
        };
        let gas_admins: Vec<GasAdmin> = values.get("evm.gas_admins")?;
        let passwords: Vec<KeystorePassword> = values.get("evm.keystore_passwords")?;
        let settings = Self {
            chain_id: values.get::<NonZero<u64>>("evm.chain_id")?.get(),
            gas_admins: gas_admins.into_iter().map(|GasAdmin(name, key)| (name, key)).collect(),
            keystore_passwords: passwords.into_iter().map(|it| (it.0, it.1)).collect(),
            signer_timeout: values.get("evm.signer_timeout")?,
            pools: pairs("evm.pools")?,
            maximum_gas_price: values.get("evm.maximum_gas_price")?,
            pool_maximum_gas_price: pairs("evm.pool_maximum_gas_price")?,
            maximum_payment: pairs("evm.maximum_payment")?,
            maximum_payments_per_day: pairs("evm.maximum_payments_per_day")?,
            beneficiaries: beneficiaries(values)?,
            low_balance: values.get::<u32>("evm.low_balance")?.into(),
            balance_interval: values.get("evm.balance_interval")?,
            maximum_tip: values.get("evm.maximum_tip")?,
            oracle_url: values.get_with("evm.oracle_url", parse_oracle_url)?,
            oracle_field: values.get("evm.oracle_field")?,
            oracle_first: values.get("evm.oracle_first")?,
            gate_interval: values.get("evm.gate_interval")?,
            confirmations: values.get::<NonZero<u64>>("evm.confirmations")?.get(),
            in_flight: values.get::<NonZero<usize>>("evm.in_flight")?.get(),
            resend_after: values.get("evm.resend_after")?,
            longest_gap: values.get::<NonZero<u64>>("evm.longest_gap")?.get(),
            agreeing_nodes: values.get::<u32>("evm.agreeing_nodes")? as usize,
            head_age_limit: values.get("evm.head_age_limit")?,
        };
        settings.check(values)?;
        Ok(settings)
    }

    /// Names of gas admins must be unique, and each pool's gas admin must be configured.
    fn check(&self, values: &SettingValues) -> Result<(), ConfigError> {
        if self.gas_admins.iter().any(|(_, key)| matches!(key, KeySource::Remote { .. })) {
            values.check_shorter("evm.signer_timeout", "submit.sending_limit")?;
        }
        let mut names = BTreeSet::new();
        if let Some((name, _)) = self.gas_admins.iter().find(|(name, _)| !names.insert(name)) {
            let rule = format!("the gas admin {name} is listed twice");
            return Err(values.conflict("evm.gas_admins", rule));
        }
        self.check_passwords(values)?;
        if let Some((pool, name)) = self.pools.iter().find(|(_, name)| !names.contains(name)) {
            let rule =
                format!("the pool {pool} has the gas admin {name}, which evm.gas_admins lacks");
            return Err(values.conflict("evm.pools", rule));
        }
        Ok(())
    }

    /// Each keystore needs one password, and nothing else has one.
    fn check_passwords(&self, values: &SettingValues) -> Result<(), ConfigError> {
        let keystores = self.gas_admins.iter();
        let keystores = keystores.filter(|(_, key)| matches!(key, KeySource::Keystore(_)));
        let keystores: BTreeSet<&str> = keystores.map(|(name, _)| name.as_str()).collect();
        let mut names = BTreeSet::new();
        for (name, _) in &self.keystore_passwords {
            if !keystores.contains(name.as_str()) {
                let rule = format!("evm.gas_admins has no gas admin {name} with a keystore");
                return Err(values.conflict("evm.keystore_passwords", rule));
            }
            if !names.insert(name.as_str()) {
                let rule = format!("the gas admin {name} is listed twice");
                return Err(values.conflict("evm.keystore_passwords", rule));
            }
        }
        match keystores.difference(&names).next() {
            None => Ok(()),
            Some(name) => {
                let rule = format!(
                    "the gas admin {name} has a keystore, whose password evm.keystore_passwords lacks"
                );
                Err(values.conflict("evm.gas_admins", rule))
            }
        }
    }
}

impl fmt::Debug for EvmSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvmSettings")
            .field("chain_id", &self.chain_id)
            .field("gas_admins", &self.gas_admins.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("pools", &self.pools)
            .field("maximum_gas_price", &self.maximum_gas_price)
            .field("confirmations", &self.confirmations)
            .finish_non_exhaustive()
    }
}

/// Beneficiaries, each with its pool, if it is for one pool only.
fn beneficiaries(values: &SettingValues) -> Result<Vec<(Option<String>, String)>, ConfigError> {
    let items: Vec<String> = values.get("evm.beneficiaries")?;
    let item = |item: String| match item.split_once('=') {
        Some((pool, beneficiary)) => (Some(pool.trim().to_owned()), beneficiary.trim().to_owned()),
        None => (None, item),
    };
    Ok(items.into_iter().map(item).collect())
}

/// The URL of an oracle, if there is one.
fn parse_oracle_url(text: &str) -> Result<Option<String>, String> {
    match text {
        "" => Ok(None),
        _ if text.starts_with("http://") || text.starts_with("https://") => {
            Ok(Some(text.to_owned()))
        }
        _ => Err("a URL must begin with http:// or https://".to_owned()),
    }
}
