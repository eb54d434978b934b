//! The limits of what is paid, as the settings have them.

use std::collections::BTreeMap;

use grid_batch_evm::{AllowedBeneficiaries, PoolRules, parse_address};
use grid_batch_withdrawals::{Amount, PaymentLimits, WithdrawalRules};

use super::evm::{invalid, parsed};
use crate::{EvmConfig, StartError};

/// How much may be scheduled from each pool.
pub(super) fn limits(config: &EvmConfig, rules: &PoolRules) -> Result<PaymentLimits, StartError> {
    Ok(PaymentLimits {
        payment: amounts("evm.maximum_payment", &config.maximum_payment, rules)?,
        day: amounts("evm.maximum_payments_per_day", &config.maximum_payments_per_day, rules)?,
    })
}

fn amounts(
    name: &'static str,
    pairs: &[(String, String)],
    rules: &PoolRules,
) -> Result<BTreeMap<String, Amount>, StartError> {
    let mut limits = BTreeMap::new();
    for (pool, amount) in pairs {
        let (pool, _) = rules.pool(pool).map_err(|error| invalid(name, error))?;
        let amount = rules.amount(amount).map_err(|error| invalid(name, error))?;
        let amount = parsed(name, amount.parse::<Amount>())?;
        if limits.insert(pool.clone(), amount).is_some() {
            return Err(invalid(name, format!("the pool {pool} is listed twice")));
        }
    }
    Ok(limits)
}

/// The beneficiaries that may be paid.
pub(super) fn beneficiaries(
    config: &EvmConfig,
    rules: &PoolRules,
) -> Result<AllowedBeneficiaries, StartError> {
    let name = "evm.beneficiaries";
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
    Ok(AllowedBeneficiaries::new(allowed.collect::<Result<Vec<_>, StartError>>()?))
}
