mod key_source;

use std::{collections::BTreeSet, fmt, time::Duration};

use grid_batch_settings::{
    ConfigError, GivenValue, Setting, SettingValue, SettingValues, settings,
};

use crate::send_rules::SendRule;

pub use key_source::{KeySource, PasswordSource};

/// The maximum of many settings. With a longer value, set by mistake, the server would stand still for that long.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Balances change more slowly than the gas price and need more requests, so they are read at a multiple of its
/// interval.
const BALANCE_INTERVALS: u32 = 6;

settings! {
    /// The chain, and the price of gas.
    #[derive(Clone)]
    pub struct ChainSettings in "evm." {
        /// Id of the chain; the nodes must report the same.
        ///
        /// Set it to the chain's; 1 is Ethereum's main network.
        pub chain_id: u64 = number("1").equal().common().between(1, u64::MAX),
        /// Withdrawals are parked while the gas price, in gwei, is at or above this (also MAXIMUM_GAS_PRICE). A tip for
        /// block producers is at most a quarter of it, or 50 gwei if that is more.
        ///
        /// Raise it if withdrawals must not wait when gas is expensive; lower it to wait for cheaper gas.
        pub maximum_gas_price: String = text("200").equal().alias("MAXIMUM_GAS_PRICE").common(),
        /// URL of a gas price oracle, used if the node reports no price; it may contain a key. After # stands the JSON
        /// pointer to the gas price, in gwei, in the response; without it, it is /result/FastGasPrice. With first:
        /// before the URL, the oracle is asked first, and the node only if it fails.
        ///
        /// Use it if the nodes report no usable gas price, or if the oracle is better than their estimate.
        pub oracle_url: Option<OracleSource> = secret("") => oracle,
        /// How often parked withdrawals are checked; balances of gas admins and pools, and the gas price, are read six
        /// times as rarely.
        ///
        /// Raise it if the provider of the node or of the oracle limits requests: reading the balances takes a request
        /// for each gas admin and pool, and two for the price.
        pub gate_interval: Duration = text("5s").at_most(HOUR),
        /// Confirmations after which a withdrawal is final.
        ///
        /// Raise it on chains that reorganize more blocks; a withdrawal is reported as final later.
        pub confirmations: u64 = number("3").equal().between(1, 100_000),
        /// How many transactions of a gas admin may be sent and not mined; 1: each withdrawal is sent after the one
        /// before has ended.
        ///
        /// Lower it if a withdrawal that the pool refuses must never cost gas, or if nodes keep few pending
        /// transactions of an account (geth keeps 16); raise it if withdrawals wait although blocks have room.
        pub in_flight: usize = number("16").equal().between(1, 64),
        /// A transaction that is not mined for this long is sent again, with a higher gas price if the maximum allows
        /// it; a refusal of a pool that no later block confirms counts after this time.
        ///
        /// Set it to a few times the chain's interval between blocks.
        pub resend_after: Duration = text("30s").equal(),
        /// How many nonces of a gas admin may be missing at the node below the next one; withdrawals are parked while
        /// more are.
        ///
        /// Raise it when a withdrawal is parked because of a longer gap and the chain has really lost these
        /// transactions.
        pub longest_gap: u64 = number("64").equal().between(1, 100_000),
        /// A node whose latest block is older is not up to date: no withdrawal fails because of what it says; empty:
        /// blocks may have any age.
        ///
        /// Set it to about twenty times the interval between blocks, such as 5m, on a chain with regular blocks. Leave
        /// it empty on a chain that adds blocks only for transactions.
        pub head_age_limit: Option<Duration> = text("").equal(),
    }
}

impl SettingValue for SendRule {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
    }
}

settings! {
    /// The gas admins, by their names.
    #[derive(Clone)]
    pub struct GasAdminSettings in "gas_admins.*." {
        /// Secret key of the account that pays for gas: FILE, env:VARIABLE, keystore:FILE, remote:ADDRESS@URL of a
        /// signer with the interface of Web3Signer, aws-kms:ADDRESS@KEY, or gcp-kms:ADDRESS@KEY.
        ///
        /// Use one gas admin for each group of pools; a withdrawal that waits delays the later ones of its gas admin.
        pub key: Vec<(String, KeySource)> = text("").equal().with_secrets().common() => SettingValues::get_entries,
        /// Password of the gas admin's keystore: FILE or env:VARIABLE.
        ///
        /// Give the file mode 0600 and the server's user as its owner.
        pub password: Vec<(String, PasswordSource)> = text("") => SettingValues::get_entries,
        /// What the gas admin may send beside withdrawals: an address, an address with a function such as
        /// 0x…/0xa9059cbb, create for new contracts, or * for everything; other transactions are refused with 403.
        /// With 5ether/day, its transactions transfer at most so many coins in 24 hours; others are refused with 429.
        ///
        /// Leave it empty for a gas admin of withdrawals only. Clients with the scope for withdrawals may request what
        /// it and their token allow, and no limit of a pool applies to it.
        pub may_send: Vec<(String, Vec<SendRule>)> = list("").equal() => SettingValues::get_entries,
    }
}

settings! {
    /// The pools, by their addresses.
    #[derive(Clone)]
    pub struct PoolSettings in "pools.*." {
        /// Name of the gas admin of the pool with this address.
        ///
        /// Add a pool before the first withdrawal from it is requested.
        pub gas_admin: Vec<(String, String)> = text("").equal().common() => SettingValues::get_entries,
        /// Maximum gas price of the pool, if it is not evm.maximum_gas_price.
        ///
        /// Use it for pools whose withdrawals are more or less urgent.
        pub maximum_gas_price: Vec<(String, String)> = text("").equal() => SettingValues::get_entries,
        /// Largest amount of a withdrawal from the pool; larger ones are refused with 403.
        ///
        /// Set it above the largest amount that is expected, so that a client that makes a mistake or is abused can
        /// request no more. It applies to new withdrawals and retries.
        pub maximum_payment: Vec<(String, String)> = text("").equal() => SettingValues::get_entries,
        /// Largest sum of the amounts scheduled from the pool in 24 hours; what exceeds it is refused with 429.
        /// Withdrawals that have failed do not count.
        ///
        /// Set it above what is usually paid in a day. An amount counts for 24 hours, and up to ten minutes longer.
        pub maximum_payments_per_day: Vec<(String, String)> = text("").equal() => SettingValues::get_entries,
        /// Beneficiaries that the pool may pay, or all pools with the key *; others are refused with 403. A pool for
        /// which none is listed may pay any.
        ///
        /// Use it for pools that pay only known accounts. A withdrawal that is scheduled and not signed yet fails if
        /// its beneficiary is removed. An empty file is refused, because it would allow all.
        pub beneficiaries: Vec<(String, Vec<String>)> = list("").equal() => SettingValues::get_entries,
    }
}

settings! {
    /// What only tests set.
    #[derive(Clone)]
    pub struct TestSettings in "testing." {
        /// The time limit of a request to a remote signer, if it is not that for connecting to a node.
        pub signer_timeout: Option<Duration> = text(""),
        /// How often balances and the gas price are read.
        pub balance_interval: Option<Duration> = text(""),
        /// The JSON pointer to the price in the response of an oracle. Earlier releases had it as evm.oracle_field.
        pub oracle_field: String = text("/result/FastGasPrice"),
    }
}

/// The settings that only this adapter reads.
pub const SETTINGS: &[&[Setting]] = &[
    ChainSettings::SETTINGS,
    GasAdminSettings::SETTINGS,
    PoolSettings::SETTINGS,
    TestSettings::SETTINGS,
];

/// The values of [`SETTINGS`]. Addresses and prices are text here.
#[derive(Clone)]
pub struct EvmSettings {
    /// The chain, and the price of gas.
    pub chain: ChainSettings,
    /// The gas admins.
    pub gas_admins: GasAdminSettings,
    /// The pools.
    pub pools: PoolSettings,
    /// What only tests set.
    pub testing: TestSettings,
}

impl EvmSettings {
    /// Reads and checks them.
    pub fn new(values: &SettingValues) -> Result<Self, ConfigError> {
        let settings = Self {
            chain: ChainSettings::read(values)?,
            gas_admins: GasAdminSettings::read(values)?,
            pools: PoolSettings::read(values)?,
            testing: TestSettings::read(values)?,
        };
        settings.check(values)?;
        Ok(settings)
    }

    /// How often balances and the gas price are read.
    pub fn balance_interval(&self) -> Duration {
        self.testing.balance_interval.unwrap_or(self.chain.gate_interval * BALANCE_INTERVALS)
    }

    /// Each pool's gas admin must be configured.
    fn check(&self, values: &SettingValues) -> Result<(), ConfigError> {
        for setting in [GasAdminSettings::key, PoolSettings::gas_admin] {
            let all = values.entries(&setting).find(|it| it.key.as_deref() == Some("*"));
            if let Some(given) = all {
                let name = setting.name;
                let rule = format!(
                    "{name} is set for one gas admin or pool: replace * with its name or address"
                );
                return Err(given.conflict(rule));
            }
        }
        let names: BTreeSet<&str> =
            self.gas_admins.key.iter().map(|(name, _)| name.as_str()).collect();
        self.check_passwords(values)?;
        for given in values.entries(&PoolSettings::gas_admin) {
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
        let keystores = self.gas_admins.key.iter();
        let keystores = keystores.filter(|(_, key)| matches!(key, KeySource::Keystore(_)));
        let keystores: BTreeSet<&str> = keystores.map(|(name, _)| name.as_str()).collect();
        for given in values.entries(&GasAdminSettings::password) {
            let name = key_of(given);
            if !keystores.contains(name.as_str()) {
                let rule = format!("gas_admins has no gas admin {name} with a keystore");
                return Err(given.conflict(rule));
            }
        }
        let has_password = |name: &str| self.gas_admins.password.iter().any(|(of, _)| of == name);
        for given in values.entries(&GasAdminSettings::key) {
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
            .field("chain_id", &self.chain.chain_id)
            .field(
                "gas_admins",
                &self.gas_admins.key.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            )
            .field("pools", &self.pools.gas_admin)
            .field("maximum_gas_price", &self.chain.maximum_gas_price)
            .field("confirmations", &self.chain.confirmations)
            .finish_non_exhaustive()
    }
}

fn oracle(values: &SettingValues, setting: &Setting) -> Result<Option<OracleSource>, ConfigError> {
    values.get_with(setting, parse_oracle)
}

/// A gas price oracle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OracleSource {
    /// Its URL.
    pub url: String,
    /// The JSON pointer to the price.
    pub pointer: Option<String>,
    /// Whether it is asked before the node.
    pub is_first: bool,
}

/// The oracle, if there is one: its URL with the JSON pointer after `#`.
fn parse_oracle(text: &str) -> Result<Option<OracleSource>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let after_first = text.strip_prefix("first:");
    let (text, is_first) = (after_first.unwrap_or(text), after_first.is_some());
    if !text.starts_with("http://") && !text.starts_with("https://") {
        return Err("a URL must begin with http:// or https://".to_owned());
    }
    let oracle = |url: &str, pointer: Option<&str>| OracleSource {
        url: url.to_owned(),
        pointer: pointer.map(str::to_owned),
        is_first,
    };
    match text.split_once('#') {
        None => Ok(Some(oracle(text, None))),
        Some((url, pointer)) if pointer.starts_with('/') => Ok(Some(oracle(url, Some(pointer)))),
        Some(_) => {
            Err("after # it must be a JSON pointer, such as /result/FastGasPrice".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oracle_may_be_asked_first() {
        let oracle = |text| parse_oracle(text).unwrap().unwrap();
        let expected = OracleSource {
            url: "https://a/b?c=d".to_owned(),
            pointer: Some("/price".to_owned()),
            is_first: true,
        };
        assert_eq!(oracle("first:https://a/b?c=d#/price"), expected);
        let expected = OracleSource { pointer: None, is_first: false, ..expected };
        assert_eq!(oracle("https://a/b?c=d"), expected);
        assert_eq!(parse_oracle(""), Ok(None));
        for text in ["first:", "first:a", "ftp://a", "https://a#price"] {
            assert!(parse_oracle(text).is_err(), "{text}");
        }
    }
}
