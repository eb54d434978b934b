use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::Address;
use grid_batch_withdrawals::{Amount, PaymentLimits, WithdrawalRules};

use super::{
    POOLS,
    error::{EvmSetupError, invalid, parsed},
};
use crate::{
    beneficiaries::AllowedBeneficiaries,
    rules::PoolRules,
    settings::{EvmSettings, PoolSettings},
    values::{parse_address, parse_amount},
};

impl EvmSettings {
    /// How much may be scheduled from each pool. No key is read, because commands obey the limits as well.
    pub fn payment_limits(&self) -> Result<PaymentLimits, EvmSetupError> {
        let pools = self.pools.gas_admin.iter().map(|(pool, _)| parsed(POOLS, parse_address(pool)));
        let pools = pools.collect::<Result<BTreeSet<Address>, EvmSetupError>>()?;
        let PoolSettings { maximum_payment, maximum_payments_per_day, .. } = &self.pools;
        let (payment, day) =
            (PoolSettings::maximum_payment, PoolSettings::maximum_payments_per_day);
        Ok(PaymentLimits {
            payment: amounts(payment.name, maximum_payment, &pools)?,
            day: amounts(day.name, maximum_payments_per_day, &pools)?,
        })
    }
}

fn amounts(
    name: &'static str,
    pairs: &[(String, String)],
    pools: &BTreeSet<Address>,
) -> Result<BTreeMap<String, Amount>, EvmSetupError> {
    let mut limits = BTreeMap::new();
    for (pool, amount) in pairs {
        let pool = parsed(name, parse_address(pool))?;
        if !pools.contains(&pool) {
            return Err(invalid(name, format!("the pool {pool} is not configured")));
        }
        let amount = parsed(name, parse_amount(amount))?.to_string();
        let amount = parsed(name, amount.parse::<Amount>())?;
        if limits.insert(pool.to_string(), amount).is_some() {
            return Err(invalid(name, format!("the pool {pool} is listed twice")));
        }
    }
    Ok(limits)
}

/// The beneficiaries that may be paid.
pub(super) fn beneficiaries(
    config: &EvmSettings,
    rules: &PoolRules,
) -> Result<AllowedBeneficiaries, EvmSetupError> {
    let name = PoolSettings::beneficiaries.name;
    let mut allowed = Vec::new();
    for (pool, beneficiaries) in &config.pools.beneficiaries {
        for beneficiary in beneficiaries {
            let pool = match pool.as_str() {
                "*" => None,
                pool => {
                    rules.pool(pool).map_err(|error| invalid(name, error))?;
                    Some(parsed(name, parse_address(pool))?)
                }
            };
            allowed.push((pool, parsed(name, parse_address(beneficiary))?));
        }
    }
    Ok(AllowedBeneficiaries::new(allowed))
}
