//! Pools on an EVM chain.

use std::{env, fmt, sync::Arc};

use grid_batch_core::SigningStore;
use grid_batch_evm::{
    AccountScopeId, Evm, EvmOptions, GasAdminKey, GasAdminKeyError, OracleOptions, PoolRules,
    parse_address,
};
use grid_batch_store::Store;

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
    Ok(Chain { nodes, rules, options: options(config, keys)? })
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
    let pools = config.pools.iter().map(|(pool, name)| {
        let key = names.iter().position(|other| other == name).map(|index| &keys[index]);
        let key = key.ok_or_else(|| StartError::part(format!("no gas admin is named {name}")))?;
        let scope = AccountScopeId::new(config.chain_id, key.address());
        Ok((understood("evm.pools", parse_address(pool))?, scope))
    });
    Ok(PoolRules::new(pools.collect::<Result<Vec<_>, StartError>>()?))
}

fn options(config: &Config, keys: Vec<GasAdminKey>) -> Result<EvmOptions, StartError> {
    let evm = &config.evm;
    let cap = understood("evm.maximum_gas_price", evm.maximum_gas_price.parse())?;
    let pool_caps = evm.pool_maximum_gas_price.iter().map(|(pool, price)| {
        let name = "evm.pool_maximum_gas_price";
        Ok((understood(name, parse_address(pool))?, understood(name, price.parse())?))
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

/// A value that only the chain's adapter understands.
fn understood<T, E: fmt::Display>(
    name: &'static str,
    value: Result<T, E>,
) -> Result<T, StartError> {
    value.map_err(|error| StartError::Setting { name, message: error.to_string() })
}
