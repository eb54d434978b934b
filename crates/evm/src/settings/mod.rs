mod key_source;
mod table;

use std::{collections::BTreeSet, fmt, num::NonZero, time::Duration};

use grid_batch_settings::{ConfigError, GivenValue, SettingValues};

pub use key_source::{KeySource, PasswordSource};
pub use table::SETTINGS;

const KEY: &str = "gas_admins.*.key";
const PASSWORD: &str = "gas_admins.*.password";
const GAS_ADMIN: &str = "pools.*.gas_admin";

/// Balances change more slowly than the gas price and need more requests, so they are read at a multiple of its
/// interval.
const BALANCE_INTERVALS: u32 = 6;

/// The pools of an EVM chain, their gas admins, and the price of gas.
///
/// The values of [`SETTINGS`]. Addresses and prices are text here.
#[derive(Clone)]
pub struct EvmSettings {
    /// The chain's id.
    pub chain_id: u64,
    /// The names of the gas admins and the sources of their keys.
    pub gas_admins: Vec<(String, KeySource)>,
    /// The names of the gas admins with a keystore and the sources of its password.
    pub keystore_passwords: Vec<(String, PasswordSource)>,
    /// The time limit of a request to a remote signer, if it differs from that for connecting to a node.
    pub signer_timeout: Option<Duration>,
    /// The pools' addresses, and the names of their gas admins.
    pub pools: Vec<(String, String)>,
    /// Withdrawals are parked while the gas price, in gwei, is at or above this.
    pub maximum_gas_price: String,
    /// Other maximum gas prices, by the pool's address.
    pub pool_maximum_gas_price: Vec<(String, String)>,
    /// The largest amounts of a withdrawal, by the pool's address.
    pub maximum_payment: Vec<(String, String)>,
    /// The largest sums of amounts in a day, by the pool's address.
    pub maximum_payments_per_day: Vec<(String, String)>,
    /// The beneficiaries that may be paid, each for one pool or for all; empty: any beneficiary.
    pub beneficiaries: Vec<(Option<String>, String)>,
    /// How often balances and the gas price are read.
    pub balance_interval: Duration,
    /// The URL of a gas price oracle.
    pub oracle_url: Option<String>,
    /// The JSON pointer to the price in the oracle's answer.
    pub oracle_field: String,
    /// Whether to ask the oracle first, and the node only if the oracle fails.
    pub oracle_first: bool,
    /// How often the gates of parked withdrawals are checked.
    pub gate_interval: Duration,
    /// The confirmations after which a withdrawal is final.
    pub confirmations: u64,
    /// How many transactions of a gas admin may be sent but not mined.
    pub in_flight: usize,
    /// How long a transaction may stay unmined before it is sent again.
    pub resend_after: Duration,
    /// How many nonces may be missing at the node.
    pub longest_gap: u64,
    /// A node whose latest block is older than this is not up to date; `None` for any age.
    pub head_age_limit: Option<Duration>,
}

impl EvmSettings {
    /// Reads and checks them.
    pub fn new(values: &SettingValues) -> Result<Self, ConfigError> {
        let oracle = values.get_with("evm.oracle_url", parse_oracle)?;
        let gate_interval: Duration = values.get("evm.gate_interval")?;
        let balance_interval: Option<Duration> = values.get("testing.balance_interval")?;
        let settings = Self {
            chain_id: values.get::<NonZero<u64>>("evm.chain_id")?.get(),
            gas_admins: values.get_entries(KEY)?,
            keystore_passwords: values.get_entries(PASSWORD)?,
            signer_timeout: values.get("testing.signer_timeout")?,
            pools: values.get_entries(GAS_ADMIN)?,
            maximum_gas_price: values.get("evm.maximum_gas_price")?,
            pool_maximum_gas_price: values.get_entries("pools.*.maximum_gas_price")?,
            maximum_payment: values.get_entries("pools.*.maximum_payment")?,
            maximum_payments_per_day: values.get_entries("pools.*.maximum_payments_per_day")?,
            beneficiaries: beneficiaries(values)?,
            balance_interval: balance_interval.unwrap_or(gate_interval * BALANCE_INTERVALS),
            oracle_field: match &oracle {
                Some((_, Some(field))) => field.clone(),
                _ => values.get("testing.oracle_field")?,
            },
            oracle_url: oracle.map(|(url, _)| url),
            oracle_first: values.get("evm.oracle_first")?,
            gate_interval,
            confirmations: values.get::<NonZero<u64>>("evm.confirmations")?.get(),
            in_flight: values.get::<NonZero<usize>>("evm.in_flight")?.get(),
            resend_after: values.get("evm.resend_after")?,
            longest_gap: values.get::<NonZero<u64>>("evm.longest_gap")?.get(),
            head_age_limit: values.get("evm.head_age_limit")?,
        };
        settings.check(values)?;
        Ok(settings)
    }

    /// Each pool's gas admin must be configured.
    fn check(&self, values: &SettingValues) -> Result<(), ConfigError> {
        for name in [KEY, GAS_ADMIN] {
            if let Some(given) = values.entries(name).find(|it| it.key.as_deref() == Some("*")) {
                let rule = format!(
                    "{name} is set for one gas admin or pool: replace * with its name or address"
                );
                return Err(given.conflict(rule));
            }
        }
        let names: BTreeSet<&str> = self.gas_admins.iter().map(|(name, _)| name.as_str()).collect();
        self.check_passwords(values)?;
        for given in values.entries(GAS_ADMIN) {
            if !names.contains(given.text.as_str()) {
                let (pool, name) = (given.key.as_deref().unwrap_or_default(), &given.text);
                let rule =
                    format!("the pool {pool} has the gas admin {name}, which gas_admins lacks");
                return Err(given.conflict(rule));
            }
        }
        Ok(())
    }

    /// Each keystore needs a password, and no other key may have one.
    fn check_passwords(&self, values: &SettingValues) -> Result<(), ConfigError> {
        let key_of = |given: &GivenValue| given.key.clone().unwrap_or_default();
        let keystores = self.gas_admins.iter();
        let keystores = keystores.filter(|(_, key)| matches!(key, KeySource::Keystore(_)));
        let keystores: BTreeSet<&str> = keystores.map(|(name, _)| name.as_str()).collect();
        for given in values.entries(PASSWORD) {
            let name = key_of(given);
            if !keystores.contains(name.as_str()) {
                let rule = format!("gas_admins has no gas admin {name} with a keystore");
                return Err(given.conflict(rule));
            }
        }
        let has_password = |name: &str| self.keystore_passwords.iter().any(|(of, _)| of == name);
        for given in values.entries(KEY) {
            let name = key_of(given);
            if keystores.contains(name.as_str()) && !has_password(&name) {
                let rule = format!(
                    "the gas admin {name} has a keystore, whose password gas_admins.{name}.password lacks"
                );
                return Err(given.conflict(rule));
            }
        }
        Ok(())
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

/// The beneficiaries, each with its pool if it applies to only one.
fn beneficiaries(values: &SettingValues) -> Result<Vec<(Option<String>, String)>, ConfigError> {
    let pools: Vec<(String, Vec<String>)> = values.get_entries("pools.*.beneficiaries")?;
    let of_pool = |(pool, beneficiaries): (String, Vec<String>)| {
        let pool = Some(pool).filter(|pool| pool != "*");
        beneficiaries.into_iter().map(move |beneficiary| (pool.clone(), beneficiary))
    };
    Ok(pools.into_iter().flat_map(of_pool).collect())
}

/// The URL of an oracle, if there is one, and the JSON pointer after its `#`.
fn parse_oracle(text: &str) -> Result<Option<(String, Option<String>)>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    if !text.starts_with("http://") && !text.starts_with("https://") {
        return Err("a URL must begin with http:// or https://".to_owned());
    }
    match text.split_once('#') {
        None => Ok(Some((text.to_owned(), None))),
        Some((url, pointer)) if pointer.starts_with('/') => {
            Ok(Some((url.to_owned(), Some(pointer.to_owned()))))
        }
        Some(_) => {
            Err("after # it must be a JSON pointer, such as /result/FastGasPrice".to_owned())
        }
    }
}
