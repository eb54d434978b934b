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
    settings::EvmSettings,
    values::{parse_address, parse_amount},
};

impl EvmSettings {
    /// How much may be scheduled from each pool. No key is read, because commands obey the limits as well.
    pub fn payment_limits(&self) -> Result<PaymentLimits, EvmSetupError> {
        let pools = self.pools.iter().map(|(pool, _)| parsed(POOLS, parse_address(pool)));
        let pools = pools.collect::<Result<BTreeSet<Address>, EvmSetupError>>()?;
        let per_day = "pools.*.maximum_payments_per_day";
        Ok(PaymentLimits {
            payment: amounts("pools.*.maximum_payment", &self.maximum_payment, &pools)?,
            day: amounts(per_day, &self.maximum_payments_per_day, &pools)?,
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
    let name = "pools.*.beneficiaries";
    let allowed = config.beneficiaries.iter().map(|(pool, beneficiary)| {
        let pool = match pool {
            None => None,
            Some(pool) => {
                rules.pool(pool).map_err(|error| invalid(name, error))?;
                Some(parsed(name, parse_address(pool))?)
            }
        };
        Ok((pool, parsed(name, parse_address(beneficiary))?))
    });
    Ok(AllowedBeneficiaries::new(allowed.collect::<Result<Vec<_>, EvmSetupError>>()?))
}
