//! Pools on an EVM chain.

use std::{fmt, sync::Arc, time::Duration};

use grid_batch_evm::{
    AccountScopeId, Address, Evm, EvmAccountCheck, EvmIdentityReader, EvmOptions, EvmSettings,
    GasPrice, OracleOptions, PoolRules, SETTINGS, TransactionSigner, WatchedAccount, facts,
    parse_address,
};
use grid_batch_nodes::NodePool;
use grid_batch_store::Store;
use grid_batch_withdrawals::{OpenWithdrawals, PaymentLimits, SigningStore, WithdrawalRules};
use log::{info, warn};

use super::{
    OpenFn, ServerLedger,
    built_in::{BuiltIn, IdentityFn},
    gas::GasReports,
    gas_admins::gas_admin_signers,
    payments,
};
use crate::{Config, LedgerType, StartError, config::Adapter};

/// The setting that names the pools.
pub(super) const POOLS: &str = "pools.*.gas_admin";

/// A balance that pays for fewer withdrawals is low.
const LOW_BALANCE: u64 = 20;

/// An EVM chain.
pub(super) const TYPE: LedgerType = LedgerType {
    settings: SETTINGS,
    check_settings: |settings| EvmSettings::new(settings).map(drop),
    ..LedgerType::with_adapter(
        "evm",
        |settings| Ok(facts(settings.get("evm.resend_after")?)),
        Adapter::BuiltIn(BuiltIn { prepare, identity, id: Some(configured_id), service: None }),
    )
};

fn prepare(config: &Config) -> Result<OpenFn<'_>, StartError> {
    let chain = EvmChain::new(config)?;
    Ok(Box::new(move |store| chain.with_store(store)))
}

fn identity(config: &Config) -> Result<IdentityFn, StartError> {
    let reader = Arc::new(EvmIdentityReader::new(&config.ledger.http)?);
    Ok(Box::new(move |node| {
        let reader = Arc::clone(&reader);
        Box::pin(async move { reader.read_id(&node).await })
    }))
}

fn configured_id(config: &Config) -> Result<String, StartError> {
    Ok(EvmIdentityReader::id_of_chain(config.evm_settings()?.chain_id))
}

impl Config {
    /// The settings of the chain and its pools.
    pub(super) fn evm_settings(&self) -> Result<EvmSettings, StartError> {
        EvmSettings::new(self.settings()).map_err(StartError::part)
    }
}

/// The parts of the adapter that need no store.
pub(in crate::server) struct EvmChain {
    nodes: NodePool,
    rules: PoolRules,
    options: EvmOptions,
    watched: Vec<WatchedAccount>,
    limits: PaymentLimits,
    balance_interval: Duration,
}

impl EvmChain {
    pub(in crate::server) fn new(config: &Config) -> Result<Self, StartError> {
        let nodes = config.ledger.shared_nodes()?;
        let settings = config.evm_settings()?;
        let (names, signers): (Vec<&str>, Vec<Arc<dyn TransactionSigner>>) =
            gas_admin_signers(config, &settings)?.into_iter().unzip();
        let rules = pool_rules(&settings, &names, &signers)?;
        let beneficiaries = payments::beneficiaries(&settings, &rules)?;
        let rules = rules.with_beneficiaries(beneficiaries);
        let limits = PaymentLimits::clone(&config.store.payment_limits);
        let watched = watched_accounts(&settings, &names, &signers)?;
        let options = evm_options(config, &settings, signers, &rules)?;
        let balance_interval = settings.balance_interval;
        Ok(Self { nodes, rules, options, watched, limits, balance_interval })
    }

    /// The ledger, which stores signed transactions in this store.
    pub(in crate::server) fn with_store(self, store: &Store) -> Result<ServerLedger, StartError> {
        let Self { nodes, rules, options, watched, limits, balance_interval } = self;
        let chain_id = options.chain_id;
        warn_of_former_gas_admins(store, &rules)?;
        let signing: Arc<dyn SigningStore> = Arc::new(store.clone());
        let evm = Evm::new(options, signing, nodes.confirmed());
        let evm = evm.map_err(StartError::part)?;
        let watch = Arc::new(evm.gas_watch(watched, LOW_BALANCE, balance_interval));
        Ok(ServerLedger {
            withdrawals: Some(Arc::new(rules)),
            gas: Some(watch.clone()),
            gas_reports: Some(GasReports { watch, chain_id, limits }),
            ..ServerLedger::new(Arc::new(evm))
        })
    }
}

impl EvmChain {
    /// The rules of the pools, and the check of accounts with all configured nodes.
    pub(in crate::server) fn with_account_check(
        self,
        store: &Store,
    ) -> Result<(PoolRules, EvmAccountCheck), StartError> {
        let Self { nodes, rules, options, .. } = self;
        let evm = Evm::new(options, Arc::new(store.clone()), Arc::new(nodes));
        Ok((rules, evm.map_err(StartError::part)?.account_check()))
    }
}

/// The gas admins with their pools.
fn watched_accounts(
    config: &EvmSettings,
    names: &[&str],
    signers: &[Arc<dyn TransactionSigner>],
) -> Result<Vec<WatchedAccount>, StartError> {
    let watched = |(name, signer): (&&str, &Arc<dyn TransactionSigner>)| {
        let own = config.pools.iter().filter(|(_, admin)| admin == name);
        let pools = own.map(|(pool, _)| parsed(POOLS, parse_address(pool)));
        Ok(WatchedAccount {
            name: (*name).to_owned(),
            account: AccountScopeId::new(config.chain_id, signer.address()),
            pools: pools.collect::<Result<_, StartError>>()?,
        })
    };
    names.iter().zip(signers).map(watched).collect()
}

/// The pools and the account that pays the gas of each.
fn pool_rules(
    config: &EvmSettings,
    names: &[&str],
    signers: &[Arc<dyn TransactionSigner>],
) -> Result<PoolRules, StartError> {
    if config.pools.is_empty() {
        return Err(StartError::Missing {
            name: POOLS,
            rule: "it must be the gas admin of each pool, such as gas_admin = \"treasury\" in the section \
                   [pools.\"0x…\"]",
        });
    }
    let mut pools: Vec<(Address, AccountScopeId)> = Vec::new();
    for (pool, name) in &config.pools {
        let signer = names.iter().position(|other| other == name).map(|index| &signers[index]);
        let signer =
            signer.ok_or_else(|| StartError::part(format!("no gas admin is named {name}")))?;
        let pool = parsed(POOLS, parse_address(pool))?;
        if pools.iter().any(|(other, _)| *other == pool) {
            return Err(invalid(POOLS, format!("the pool {pool} is listed twice")));
        }
        let account = AccountScopeId::new(config.chain_id, signer.address());
        info!(gas_admin = name.as_str(), account:%, pool:%; "pool configured");
        pools.push((pool, account));
    }
    Ok(PoolRules::new(pools))
}

fn evm_options(
    config: &Config,
    evm: &EvmSettings,
    signers: Vec<Arc<dyn TransactionSigner>>,
    rules: &PoolRules,
) -> Result<EvmOptions, StartError> {
    let cap = gas_price_cap("evm.maximum_gas_price", &evm.maximum_gas_price)?;
    let pool_caps = evm.pool_maximum_gas_price.iter().map(|(pool, price)| {
        let name = "pools.*.maximum_gas_price";
        rules.pool(pool).map_err(|error| invalid(name, error))?;
        Ok((parsed(name, parse_address(pool))?, gas_price_cap(name, price)?))
    });
    let oracle = evm.oracle_url.clone();
    Ok(EvmOptions {
        signers,
        pool_caps: pool_caps.collect::<Result<_, StartError>>()?,
        rules: rules.clone(),
        maximum_tip: maximum_tip(cap),
        oracle: oracle.map(|url| OracleOptions { url, pointer: evm.oracle_field.clone() }),
        oracle_first: evm.oracle_first,
        gate_interval: evm.gate_interval,
        confirmations: evm.confirmations,
        in_flight: evm.in_flight,
        resend_after: evm.resend_after,
        longest_gap: evm.longest_gap,
        agreeing_nodes: agreeing_nodes(config.ledger.urls.len()),
        head_age_limit: evm.head_age_limit,
        connections: config.poll.connections,
        http: config.ledger.http.clone(),
        clock: config.clock(),
        ..EvmOptions::new(evm.chain_id, cap)
    })
}

/// How many of the nodes have to agree: more than half.
const fn agreeing_nodes(nodes: usize) -> usize {
    nodes / 2 + 1
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

/// Far above what is usual, and a part of the price that withdrawals may have.
fn maximum_tip(cap: GasPrice) -> GasPrice {
    const LEAST_WEI: u128 = 50_000_000_000;
    GasPrice::from_wei((cap.wei() / 4).max(LEAST_WEI))
}

/// A value that the adapter has parsed.
pub(super) fn parsed<T, E: fmt::Display>(
    name: &'static str,
    value: Result<T, E>,
) -> Result<T, StartError> {
    value.map_err(|error| invalid(name, error))
}

pub(super) fn invalid(name: &'static str, message: impl fmt::Display) -> StartError {
    StartError::Setting { name, message: message.to_string() }
}

/// Warns of open withdrawals that wait for another gas admin than their pool has now.
fn warn_of_former_gas_admins(store: &Store, rules: &dyn WithdrawalRules) -> Result<(), StartError> {
    for OpenWithdrawals { service_id, pool, open } in
        store.open_withdrawals().map_err(StartError::part)?
    {
        match rules.pool(&pool) {
            Ok((_, present)) if present == service_id => {}
            Ok((_, present)) => warn!(
                pool = pool.as_str(), gas_admin:% = service_id, present:%, open;
                "the pool has another gas admin than these open withdrawals; \
                 `grid-batch move-withdrawals` shows and moves them"
            ),
            Err(_) => warn!(
                pool = pool.as_str(), gas_admin:% = service_id, open;
                "the pool of these open withdrawals is not configured; add it to pools.*.gas_admin, with its \
                 former gas admin, or with another one and `grid-batch move-withdrawals`"
            ),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_of_the_nodes_agree_by_default() {
        for (nodes, needed) in [(1, 1), (2, 2), (3, 2), (4, 3)] {
            assert_eq!(agreeing_nodes(nodes), needed);
        }
    }

    #[test]
    fn maximum_tip_is_a_quarter_of_the_maximum_price() {
        for (cap, tip) in [("1", "50"), ("200", "50"), ("1000", "250")] {
            assert_eq!(maximum_tip(cap.parse().unwrap()), tip.parse().unwrap());
        }
    }
}
