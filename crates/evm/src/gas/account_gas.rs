use std::time::Duration;

use alloy_primitives::{Address, U256};

use crate::values::GasPrice;

/// What is known about the gas of one gas admin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountGas {
    /// The name that the operator gave it.
    pub name: String,
    /// Its address.
    pub address: Address,
    /// Its balance, in wei.
    pub balance: Seen<U256>,
    /// The gas price.
    pub price: Seen<GasPrice>,
    /// The highest cap of its pools.
    pub cap: GasPrice,
    /// The gas of one withdrawal.
    pub gas_limit: GasLimit,
    /// Whether it could pay for the gas when it last needed to.
    pub can_pay: bool,
    /// How many withdrawals the balance pays for if each costs as much as the cap allows. `None`: the balance
    /// is not known, or gas is free.
    pub withdrawals_left: Option<u64>,
    /// Whether `withdrawals_left` is below the configured number.
    pub is_low: bool,
    /// Its pools.
    pub pools: Vec<PoolGas>,
}

/// What is known about the gas of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolGas {
    /// Its address.
    pub address: Address,
    /// The cap of the gas price.
    pub cap: GasPrice,
    /// For how long the price has been at or above the cap, if it is now.
    pub above_cap_for: Option<Duration>,
    /// The balance of the contract in the chain's own coins, in wei. Balances in tokens are not read.
    pub balance: Seen<U256>,
}

/// The last observation of a value on the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen<T> {
    /// The value, if it was ever read.
    pub value: Option<T>,
    /// How long ago it was read.
    pub age: Option<Duration>,
    /// Why the last attempt to read it failed.
    pub error: Option<String>,
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self { value: None, age: None, error: None }
    }
}

/// The gas that a withdrawal may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GasLimit {
    /// The gas of the last withdrawal that was simulated.
    Simulated(u64),
    /// A usual value, because no withdrawal was simulated since the start.
    Assumed(u64),
}

impl GasLimit {
    /// The maximum that a withdrawal from the known pools uses.
    const USUAL: u64 = 100_000;

    pub(super) fn of(simulated: Option<u64>) -> Self {
        simulated.map_or(Self::Assumed(Self::USUAL), Self::Simulated)
    }

    /// The gas.
    pub fn gas(self) -> u64 {
        match self {
            Self::Simulated(gas) | Self::Assumed(gas) => gas,
        }
    }

    /// The cost of this gas at this price, in wei.
    fn cost(self, price: GasPrice) -> U256 {
        // Cannot overflow: 64 and 128 bits have a product of at most 192 bits.
        U256::from(self.gas()) * U256::from(price.wei())
    }

    /// How many withdrawals a balance pays for at the cap. `None`: the present price is zero.
    pub(super) fn left(self, balance: U256, cap: GasPrice, price: Option<GasPrice>) -> Option<u64> {
        let is_free = price.is_some_and(|price| price.wei() == 0);
        (!is_free).then(|| self.payable(balance, cap))
    }

    /// How many withdrawals a balance pays for at this price.
    fn payable(self, balance: U256, price: GasPrice) -> u64 {
        let payable = balance.checked_div(self.cost(price)).unwrap_or(U256::MAX);
        u64::try_from(payable).unwrap_or(u64::MAX)
    }
}

impl AccountGas {
    /// The cost of the gas of this many withdrawals at the present price, in wei.
    pub fn cost_of(&self, withdrawals: u64) -> Option<U256> {
        let price = self.price.value?;
        Some(self.gas_limit.cost(price).saturating_mul(U256::from(withdrawals)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balance_is_not_counted_where_gas_is_free() {
        let (limit, cap) = (GasLimit::of(None), GasPrice::from_wei(200));
        let left = |price: Option<u128>| limit.left(U256::ZERO, cap, price.map(GasPrice::from_wei));
        assert_eq!((left(Some(0)), left(Some(1)), left(None)), (None, Some(0), Some(0)));
    }

    #[test]
    fn balance_pays_for_whole_withdrawals() {
        let (limit, price) = (GasLimit::of(None), GasPrice::from_wei(200));
        let payable = |wei: u64| limit.payable(U256::from(wei), price);
        assert_eq!((payable(19_999_999), payable(20_000_000)), (0, 1));
        assert_eq!(limit.payable(U256::MAX, price), u64::MAX);
        assert_eq!(GasLimit::of(Some(0)).payable(U256::ONE, price), u64::MAX);
    }
}
