//! Pools on an EVM chain.

use std::{env, fmt, sync::Arc};

use grid_batch_evm::{
    AccountScopeId, Address, Evm, EvmOptions, GasAdminKey, GasAdminKeyError, GasPrice,
    OracleOptions, PoolRules, parse_address,
};
use grid_batch_store::Store;
use grid_batch_submitter::NodeChoice;
use grid_batch_withdrawals::{SigningStore, WithdrawalRules};
use log::info;

use super::{super::ledger_check::LedgerCheck, Ledger, LedgerNodes, key_file};
use crate::{Config, EvmConfig, KeySource, StartError};

/// The parts of the adapter that need no store.
pub(in crate::server) struct EvmChain {
    nodes: LedgerNodes<AccountScopeId>,
    rules: PoolRules,
    options: EvmOptions,
}

pub(in crate::server) fn evm(config: &Config) -> Result<EvmChain, StartError> {
    let nodes = LedgerNodes::new(&config.ledger, Vec::new(), NodeChoice::Spread)?;
    let (names, keys): (Vec<&str>, Vec<GasAdminKey>) =
        gas_admin_keys(&config.evm)?.into_iter().unzip();
    let rules = pool_rules(&config.evm, &names, &keys)?;
    let options = evm_options(config, keys, &rules)?;
    Ok(EvmChain { nodes, rules, options })
}

impl EvmChain {
    /// The ledger, which stores signed transactions in this store.
    pub(in crate::server) fn with_store(
        self,
        store: &Store,
        check: &LedgerCheck,
    ) -> Result<Ledger<AccountScopeId>, StartError> {
        let Self { nodes, rules, options } = self;
        let signing: Arc<dyn SigningStore> = Arc::new(store.clone());
        let evm = Evm::new(options, signing, nodes.confirmed_resolver(check));
        let evm = evm.map_err(StartError::part)?;
        let without_funds = evm.accounts_without_funds();
        Ok(Ledger {
            sender: Arc::new(evm.sender()),
            reader: Arc::new(evm.status_reader()),
            evidence: Arc::new(evm.evidence_reader()),
            events: None,
            ask_ahead: None,
            // Nonces keep the order at every node.
            node_check: None,
            service_check: None,
            nodes,
            withdrawals: Some(Arc::new(rules)),
            accounts_without_funds: Some(Arc::new(move || {
                u64::try_from(without_funds.count()).unwrap_or(u64::MAX)
            })),
        })
    }
}

/// The keys of the gas admins, with their names.
fn gas_admin_keys(config: &EvmConfig) -> Result<Vec<(&str, GasAdminKey)>, StartError> {
    let admins = config.gas_admins.iter();
    admins.map(|(name, source)| Ok((name.as_str(), gas_admin_key(name, source)?))).collect()
}

fn gas_admin_key(name: &str, source: &KeySource) -> Result<GasAdminKey, StartError> {
    match source {
        KeySource::File(file) => {
            key_file::read(file)?.parse().map_err(|error| key_file::unusable(file, error))
        }
        KeySource::Variable(variable) => {
            let unusable = |message: String| StartError::Key {
                location: format!("key in the variable {variable}, of the gas admin {name},"),
                message,
            };
            let text = env::var(variable).map_err(|error| unusable(error.to_string()))?;
            text.parse().map_err(|error: GasAdminKeyError| unusable(error.to_string()))
        }
    }
}

/// The pools and the account that pays the gas of each.
fn pool_rules(
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
        let pool = parsed("evm.pools", parse_address(pool))?;
        if pools.iter().any(|(other, _)| *other == pool) {
            return Err(invalid("evm.pools", format!("the pool {pool} is listed twice")));
        }
        let account = AccountScopeId::new(config.chain_id, key.address());
        info!(gas_admin = name.as_str(), account:%, pool:%; "pool configured");
        pools.push((pool, account));
    }
    Ok(PoolRules::new(pools))
}

fn evm_options(
    config: &Config,
    keys: Vec<GasAdminKey>,
    rules: &PoolRules,
) -> Result<EvmOptions, StartError> {
    let evm = &config.evm;
    let cap = gas_price_cap("evm.maximum_gas_price", &evm.maximum_gas_price)?;
    let pool_caps = evm.pool_maximum_gas_price.iter().map(|(pool, price)| {
        let name = "evm.pool_maximum_gas_price";
        rules.pool(pool).map_err(|error| invalid(name, error))?;
        Ok((parsed(name, parse_address(pool))?, gas_price_cap(name, price)?))
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
        clock: config.clock(),
        ..EvmOptions::new(evm.chain_id, cap)
    })
}

/// A cap above zero: no gas price is below zero.
fn gas_price_cap(name: &'static str, text: &str) -> Result<GasPrice, StartError> {
    match parsed(name, text.parse::<GasPrice>())? {
        cap if cap.wei() == 0 => Err(invalid(
            name,
            "it must be more than 0 gwei, or every withdrawal is parked for ever",
        )),
        cap => Ok(cap),
    }
}

/// A value that the adapter has parsed.
fn parsed<T, E: fmt::Display>(name: &'static str, value: Result<T, E>) -> Result<T, StartError> {
    value.map_err(|error| invalid(name, error))
}

fn invalid(name: &'static str, message: impl fmt::Display) -> StartError {
    StartError::Setting { name, message: message.to_string() }
}
