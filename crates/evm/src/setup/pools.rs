use std::sync::Arc;

use alloy_primitives::Address;
use log::info;

use super::{
    POOLS,
    error::{EvmSetupError, invalid, parsed},
};
use crate::{
    gas::WatchedAccount, rules::PoolRules, scope::AccountScopeId, settings::EvmSettings,
    signer::TransactionSigner, values::parse_address,
};

/// The gas admins with their pools.
pub(super) fn watched_accounts(
    config: &EvmSettings,
    names: &[&str],
    signers: &[Arc<dyn TransactionSigner>],
) -> Result<Vec<WatchedAccount>, EvmSetupError> {
    let watched = |(name, signer): (&&str, &Arc<dyn TransactionSigner>)| {
        let own = config.pools.gas_admin.iter().filter(|(_, admin)| admin == name);
        let pools = own.map(|(pool, _)| parsed(POOLS, parse_address(pool)));
        Ok(WatchedAccount {
            name: (*name).to_owned(),
            account: AccountScopeId::new(config.chain.chain_id, signer.address()),
            pools: pools.collect::<Result<_, EvmSetupError>>()?,
        })
    };
    names.iter().zip(signers).map(watched).collect()
}

/// The pools and the account that pays the gas of each.
pub(super) fn rules(
    config: &EvmSettings,
    names: &[&str],
    signers: &[Arc<dyn TransactionSigner>],
) -> Result<PoolRules, EvmSetupError> {
    if config.pools.gas_admin.is_empty() && config.gas_admins.key.is_empty() {
        return Err(EvmSetupError::Missing {
            name: POOLS,
            rule: "it must be the gas admin of each pool, such as gas_admin = \"treasury\" in the section \
                   [pools.\"0x…\"]",
        });
    }
    let mut pools: Vec<(Address, AccountScopeId)> = Vec::new();
    for (pool, name) in &config.pools.gas_admin {
        let signer = names.iter().position(|other| other == name).map(|index| &signers[index]);
        let signer = signer.ok_or_else(|| EvmSetupError::UnknownGasAdmin(name.clone()))?;
        let pool = parsed(POOLS, parse_address(pool))?;
        if pools.iter().any(|(other, _)| *other == pool) {
            return Err(invalid(POOLS, format!("the pool {pool} is listed twice")));
        }
        let account = AccountScopeId::new(config.chain.chain_id, signer.address());
        info!(gas_admin = name.as_str(), account:%, pool:%; "pool configured");
        pools.push((pool, account));
    }
    Ok(PoolRules::new(pools))
}
