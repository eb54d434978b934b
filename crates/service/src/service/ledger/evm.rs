//! Pools on an EVM chain.

use std::{env, fmt, sync::Arc};

use grid_batch_evm::{
    AccountScopeId, Address, Evm, EvmOptions, GasAdminKey, GasAdminKeyError, GasPrice,
    OracleOptions, PoolRules, parse_address,
};
use grid_batch_store::Store;
use grid_batch_withdrawals::{SigningStore, WithdrawalRules};
use log::info;

use super::{Ledger, Nodes, secret};
use crate::{Config, EvmConfig, KeySource, StartError};

/// Everything of a chain that is known before there is a store.
pub(in crate::service) struct Chain {
    nodes: Nodes<AccountScopeId>,
    rules: PoolRules,
    options: EvmOptions,
}

pub(in crate::service) fn evm(config: &Config) -> Result<Chain, StartError> {
    let nodes = Nodes::new(&config.ledger, Vec::new())?;
    let (names, keys): (Vec<&str>, Vec<GasAdminKey>) = keys(&config.evm)?.into_iter().unzip();
    let rules = rules(&config.evm, &names, &keys)?;
    let options = options(config, keys, &rules)?;
    Ok(Chain { nodes, rules, options })
}

impl Chain {
    /// The ledger, which keeps in this store what it signs.
    pub(in crate::service) fn over(
        self,
        store: &Store,
    ) -> Result<Ledger<AccountScopeId>, StartError> {
        let Self { nodes, rules, options } = self;
        let signing: Arc<dyn SigningStore> = Arc::new(store.clone());
        let evm = Evm::new(options, signing, nodes.for_statuses()).map_err(StartError::part)?;
        Ok(Ledger {
            sender: Arc::new(evm.sender()),
            reader: Arc::new(evm.status_reader()),
            evidence: Arc::new(evm.evidence_reader()),
            events: None,
            nodes,
            withdrawals: Some(Arc::new(rules)),
        })
    }
}

/// The gas admins' keys, by their names.
fn keys(config: &EvmConfig) -> Result<Vec<(&str, GasAdminKey)>, StartError> {
    let key = |(name, source): &'_ (String, KeySource)| match source {
        KeySource::File(file) => {
            secret::of_file(file)?.parse().map_err(|error| secret::unusable(file, error))
        }
        KeySource::Variable(variable) => {
            let unusable = |message: String| StartError::Key {
                place: format!("key in the variable {variable}, of the gas admin {name},"),
                message,
            };
            let text = env::var(variable).map_err(|error| unusable(error.to_string()))?;
            text.parse().map_err(|error: GasAdminKeyError| unusable(error.to_string()))
        }
    };
    config.gas_admins.iter().map(|admin| Ok((admin.0.as_str(), key(admin)?))).collect()
}

/// Which pools there are, and which account pays for the gas of each.
fn rules(
    config: &EvmConfig,
    names: &[&str],
    keys: &[GasAdminKey],
) -> Result<PoolRules, StartError> {
    if config.pools.is_empty() {
        return Err(StartError::Missing {
            name: "evm.pools",
            rule: "it must be the pools, each with its gas admin, such as [\"0x…=treasury\"]",
        });
    }
    let mut pools: Vec<(Address, AccountScopeId)> = Vec::new();
    for (pool, name) in &config.pools {
        let key = names.iter().position(|other| other == name).map(|index| &keys[index]);
        let key = key.ok_or_else(|| StartError::part(format!("no gas admin is named {name}")))?;
        let pool = understood("evm.pools", parse_address(pool))?;
        if pools.iter().any(|(other, _)| *other == pool) {
            return Err(wrong("evm.pools", format!("the pool {pool} stands there twice")));
        }
        let account = AccountScopeId::new(config.chain_id, key.address());
        info!(gas_admin = name.as_str(), account:%, pool:%; "a pool is served");
        pools.push((pool, account));
    }
    Ok(PoolRules::new(pools))
}

fn options(
    config: &Config,
    keys: Vec<GasAdminKey>,
    rules: &PoolRules,
) -> Result<EvmOptions, StartError> {
    let evm = &config.evm;
    let cap = cap("evm.maximum_gas_price", &evm.maximum_gas_price)?;
    let pool_caps = evm.pool_maximum_gas_price.iter().map(|(pool, price)| {
        let name = "evm.pool_maximum_gas_price";
        rules.pool(pool).map_err(|error| wrong(name, error))?;
        Ok((understood(name, parse_address(pool))?, self::cap(name, price)?))
    });
    let oracle = evm.oracle_url.clone();
    Ok(EvmOptions {
        keys,
        pool_caps: pool_caps.collect::<Result<_, StartError>>()?,
        oracle: oracle.map(|url| OracleOptions { url, pointer: evm.oracle_field.clone() }),
        oracle_first: evm.oracle_first,
        gate_interval: evm.gate_interval,
        confirmations: evm.confirmations,
        resend_after: evm.resend_after,
        connections: config.poll.connections,
        http: config.ledger.http.clone(),
        ..EvmOptions::new(evm.chain_id, cap)
    })
}

/// A price that something is below.
fn cap(name: &'static str, text: &str) -> Result<GasPrice, StartError> {
    match understood(name, text.parse::<GasPrice>())? {
        cap if cap.wei() == 0 => {
            Err(wrong(name, "nothing is below 0 gwei: no withdrawal would ever be made"))
        }
        cap => Ok(cap),
    }
}

/// A value that only the chain's adapter understands.
fn understood<T, E: fmt::Display>(
    name: &'static str,
    value: Result<T, E>,
) -> Result<T, StartError> {
    value.map_err(|error| wrong(name, error))
}

fn wrong(name: &'static str, message: impl fmt::Display) -> StartError {
    StartError::Setting { name, message: message.to_string() }
}
