use std::collections::{HashMap, HashSet};

use alloy_primitives::Address;

/// The beneficiaries that may be paid. The default allows all.
///
/// ```
/// use grid_batch_evm::{AllowedBeneficiaries, parse_address};
///
/// let of = |digit: &str| parse_address(&format!("0x{}", digit.repeat(40))).unwrap();
/// let allowed = AllowedBeneficiaries::new([(None, of("1")), (Some(of("a")), of("2"))]);
/// assert!(allowed.contains(of("b"), of("1")) && !allowed.contains(of("b"), of("2")));
/// assert!(allowed.contains(of("a"), of("1")) && allowed.contains(of("a"), of("2")));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedBeneficiaries {
    of_all_pools: HashSet<Address>,
    of_pools: HashMap<Address, HashSet<Address>>,
}

impl AllowedBeneficiaries {
    /// Allows these beneficiaries, each for one pool or, with `None`, for all pools. A pool to which no entry applies
    /// may pay any beneficiary.
    pub fn new(allowed: impl IntoIterator<Item = (Option<Address>, Address)>) -> Self {
        let mut all = Self::default();
        for (pool, beneficiary) in allowed {
            let list = match pool {
                None => &mut all.of_all_pools,
                Some(pool) => all.of_pools.entry(pool).or_default(),
            };
            list.insert(beneficiary);
        }
        all
    }

    /// Whether the pool may pay the beneficiary.
    pub fn contains(&self, pool: Address, beneficiary: Address) -> bool {
        let own = self.of_pools.get(&pool);
        let is_open = own.is_none() && self.of_all_pools.is_empty();
        let is_own = own.is_some_and(|list| list.contains(&beneficiary));
        is_open || is_own || self.of_all_pools.contains(&beneficiary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: Address = Address::repeat_byte(1);
    const OTHER_POOL: Address = Address::repeat_byte(2);
    const MEMBER: Address = Address::repeat_byte(3);
    const OTHER: Address = Address::repeat_byte(4);

    #[test]
    fn empty_list_allows_all() {
        assert!(AllowedBeneficiaries::default().contains(POOL, MEMBER));
    }

    #[test]
    fn list_of_a_pool_limits_only_that_pool() {
        let allowed = AllowedBeneficiaries::new([(Some(POOL), MEMBER)]);
        assert!(allowed.contains(POOL, MEMBER) && !allowed.contains(POOL, OTHER));
        assert!(allowed.contains(OTHER_POOL, OTHER));
    }

    #[test]
    fn list_of_all_pools_limits_each() {
        let allowed = AllowedBeneficiaries::new([(None, MEMBER), (Some(POOL), OTHER)]);
        assert!(allowed.contains(OTHER_POOL, MEMBER) && !allowed.contains(OTHER_POOL, OTHER));
        assert!(allowed.contains(POOL, MEMBER) && allowed.contains(POOL, OTHER));
    }
}
