use std::collections::HashMap;

use alloy_primitives::Address;
use grid_batch_core::{ScopeId, ServiceId};
use grid_batch_withdrawals::WithdrawalRules;

use crate::{
    beneficiaries::AllowedBeneficiaries,
    scope::AccountScopeId,
    values::{parse_address, parse_amount, parse_beneficiary},
};

/// The configured pools, each with its gas admin, and the rules for withdrawals from them.
///
/// ```
/// use grid_batch_withdrawals::WithdrawalRules;
/// use grid_batch_evm::{AccountScopeId, PoolRules, parse_address};
///
/// let pool = parse_address("0xd8da6bf26964af9d7eed9e03e53415d37aa96045")?;
/// let admin = parse_address("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")?;
/// let rules = PoolRules::new([(pool, AccountScopeId::new(137, admin))]);
///
/// let (canonical, _) = rules.pool("0xd8da6bf26964af9d7eed9e03e53415d37aa96045").unwrap();
/// assert_eq!(canonical, "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045");
/// assert!(rules.amount("1.5").is_err());
/// # Ok::<(), grid_batch_evm::AddressError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct PoolRules {
    services: HashMap<Address, ServiceId>,
    beneficiaries: AllowedBeneficiaries,
}

impl PoolRules {
    /// Rules for these pools.
    pub fn new(pools: impl IntoIterator<Item = (Address, AccountScopeId)>) -> Self {
        let services =
            pools.into_iter().map(|(pool, account)| (pool, account.service_id().clone())).collect();
        Self { services, beneficiaries: AllowedBeneficiaries::default() }
    }

    /// The pools of a gas admin.
    pub(crate) fn pools_of(&self, service_id: &ServiceId) -> impl Iterator<Item = Address> {
        let own = self.services.iter().filter(move |(_, service)| *service == service_id);
        own.map(|(pool, _)| *pool)
    }

    /// Whether it is a configured pool.
    pub(crate) fn is_pool(&self, address: Address) -> bool {
        self.services.contains_key(&address)
    }

    /// Restricts the beneficiaries that the pools may pay.
    #[must_use]
    pub fn with_beneficiaries(self, beneficiaries: AllowedBeneficiaries) -> Self {
        Self { beneficiaries, ..self }
    }
}

impl WithdrawalRules for PoolRules {
    fn pool(&self, text: &str) -> Result<(String, ServiceId), String> {
        let pool = parse_address(text).map_err(|error| error.to_string())?;
        match self.services.get(&pool) {
            Some(service) => Ok((pool.to_string(), service.clone())),
            None => Err(format!("the pool {pool} is not configured")),
        }
    }

    fn pool_address(&self, text: &str) -> Result<String, String> {
        parse_address(text).map(|pool| pool.to_string()).map_err(|error| error.to_string())
    }

    fn beneficiary(&self, text: &str) -> Result<String, String> {
        parse_beneficiary(text)
            .map(|address| address.to_string())
            .map_err(|error| error.to_string())
    }

    fn may_be_paid(&self, pool: &str, beneficiary: &str) -> Result<(), String> {
        let parse = |text| parse_address(text).map_err(|error| error.to_string());
        let (pool, beneficiary) = (parse(pool)?, parse(beneficiary)?);
        if self.beneficiaries.contains(pool, beneficiary) {
            return Ok(());
        }
        Err(format!(
            "the pool {pool} may not pay {beneficiary}; use a beneficiary that pools.*.beneficiaries allows, or \
             have the operator add it"
        ))
    }

    fn amount(&self, text: &str) -> Result<String, String> {
        parse_amount(text).map(|amount| amount.to_string()).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    const OTHER: &str = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359";

    fn rules() -> (PoolRules, AccountScopeId) {
        let account = AccountScopeId::new(1, Address::repeat_byte(7));
        (PoolRules::new([(POOL.parse().unwrap(), account.clone())]), account)
    }

    #[test]
    fn pool_is_ordered_by_its_gas_admin() {
        let (rules, account) = rules();
        let expected = (POOL.to_owned(), account.service_id().clone());
        assert_eq!(rules.pool(&POOL.to_lowercase()), Ok(expected.clone()));
        assert_eq!(rules.pool(POOL), Ok(expected));
    }

    #[test]
    fn unknown_pool_is_refused() {
        let (rules, _) = rules();
        let error = rules.pool(&OTHER.to_lowercase()).unwrap_err();
        assert_eq!(error, format!("the pool {OTHER} is not configured"));
        assert!(rules.pool("pool").unwrap_err().contains("0x and 40 hex digits"));
    }

    #[test]
    fn address_of_a_removed_pool_is_canonical() {
        let (rules, _) = rules();
        assert_eq!(rules.pool_address(&OTHER.to_lowercase()).as_deref(), Ok(OTHER));
        assert!(rules.pool_address("pool").unwrap_err().contains("0x and 40 hex digits"));
    }

    #[test]
    fn beneficiary_that_is_not_listed_is_refused() {
        let (rules, _) = rules();
        assert_eq!(rules.may_be_paid(POOL, OTHER), Ok(()));
        let allowed = AllowedBeneficiaries::new([(None, POOL.parse().unwrap())]);
        let rules = rules.with_beneficiaries(allowed);
        let error = rules.may_be_paid(POOL, OTHER).unwrap_err();
        assert!(error.contains(OTHER) && error.contains("pools.*.beneficiaries"), "{error}");
        assert_eq!(rules.may_be_paid(POOL, POOL), Ok(()));
    }

    #[test]
    fn beneficiary_and_amount_become_canonical() {
        let (rules, _) = rules();
        assert_eq!(rules.beneficiary(&OTHER.to_lowercase()).as_deref(), Ok(OTHER));
        assert!(rules.beneficiary(&Address::ZERO.to_string()).is_err());
        assert_eq!(rules.amount("15").as_deref(), Ok("15"));
        assert!(rules.amount("1.5").unwrap_err().contains("whole number"));
    }
}
