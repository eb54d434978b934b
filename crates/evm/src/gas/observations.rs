use std::{
    collections::{BTreeSet, HashMap},
    sync::Mutex,
    time::Duration,
};

use alloy_primitives::{Address, U256};
use grid_batch_core::MonotonicTime;
use grid_batch_support::lock;

use super::account_gas::Seen;
use crate::values::GasPrice;

/// The last observations of the gas price and of balances.
#[derive(Debug, Default)]
pub(crate) struct GasObservations(Mutex<ObservedGas>);

#[derive(Debug, Default)]
struct ObservedGas {
    price: Observation<GasPrice>,
    balances: HashMap<Address, Observation<U256>>,
    /// The gas limit of the last withdrawal that was simulated, by gas admin.
    gas_limits: HashMap<Address, u64>,
    without_funds: BTreeSet<Address>,
    /// How many withdrawals were paid after they had ended as failed.
    paid_after_failure: u64,
    /// For each cap that the price is not below: since when.
    above_since: HashMap<GasPrice, MonotonicTime>,
}

/// A value that is read repeatedly.
#[derive(Debug)]
struct Observation<T> {
    last: Option<(T, MonotonicTime)>,
    /// Why the last attempt to read it failed.
    error: Option<String>,
}

impl<T> Default for Observation<T> {
    fn default() -> Self {
        Self { last: None, error: None }
    }
}

impl<T: Copy> Observation<T> {
    fn read(&mut self, value: T, now: MonotonicTime) {
        *self = Self { last: Some((value, now)), error: None };
    }

    fn seen(&self, now: MonotonicTime) -> Seen<T> {
        Seen {
            value: self.last.map(|(value, _)| value),
            age: self.last.map(|(_, read_at)| now.since(read_at)),
            error: self.error.clone(),
        }
    }
}

impl GasObservations {
    /// Records the gas price, or why it could not be read.
    pub(crate) fn note_price(
        &self,
        price: Result<GasPrice, String>,
        caps: impl Iterator<Item = GasPrice>,
        now: MonotonicTime,
    ) {
        let mut observed = lock(&self.0);
        let price = match price {
            Ok(price) => price,
            Err(error) => return observed.price.error = Some(error),
        };
        observed.price.read(price, now);
        for cap in caps {
            if price < cap {
                observed.above_since.remove(&cap);
            } else {
                observed.above_since.entry(cap).or_insert(now);
            }
        }
    }

    pub(crate) fn note_balance(&self, account: Address, balance: U256, now: MonotonicTime) {
        lock(&self.0).balances.entry(account).or_default().read(balance, now);
    }

    /// Records that the balance could not be read.
    pub(crate) fn note_balance_error(&self, account: Address, error: &str) {
        lock(&self.0).balances.entry(account).or_default().error = Some(error.to_owned());
    }

    /// Records the gas that a withdrawal of a gas admin needs, and whether the gas admin can pay for it.
    pub(crate) fn note_need(&self, account: Address, gas_limit: u64, can_pay: bool) {
        let mut observed = lock(&self.0);
        observed.gas_limits.insert(account, gas_limit);
        if can_pay {
            observed.without_funds.remove(&account);
        } else {
            observed.without_funds.insert(account);
        }
    }

    pub(crate) fn note_paid_after_failure(&self, withdrawals: u64) {
        lock(&self.0).paid_after_failure += withdrawals;
    }

    pub(crate) fn paid_after_failure(&self) -> u64 {
        lock(&self.0).paid_after_failure
    }

    pub(crate) fn price(&self, now: MonotonicTime) -> Seen<GasPrice> {
        lock(&self.0).price.seen(now)
    }

    pub(crate) fn balance(&self, account: Address, now: MonotonicTime) -> Seen<U256> {
        lock(&self.0).balances.get(&account).map_or_else(Seen::default, |balance| balance.seen(now))
    }

    pub(crate) fn gas_limit(&self, account: Address) -> Option<u64> {
        lock(&self.0).gas_limits.get(&account).copied()
    }

    pub(crate) fn can_pay(&self, account: Address) -> bool {
        !lock(&self.0).without_funds.contains(&account)
    }

    /// For how long the price has been at or above this cap; `None` if it was below the cap when it was last read.
    pub(crate) fn above_for(&self, cap: GasPrice, now: MonotonicTime) -> Option<Duration> {
        lock(&self.0).above_since.get(&cap).map(|since| now.since(*since))
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_secs(seconds))
    }

    #[test]
    fn account_cannot_pay_until_it_can() {
        let observations = GasObservations::default();
        assert!(observations.can_pay(Address::ZERO));
        observations.note_need(Address::ZERO, 1, false);
        assert!(!observations.can_pay(Address::ZERO));
        observations.note_need(Address::ZERO, 2, true);
        assert!(observations.can_pay(Address::ZERO));
        assert_eq!(observations.gas_limit(Address::ZERO), Some(2));
    }

    #[test]
    fn value_stays_with_its_age_when_it_cannot_be_read() {
        let observations = GasObservations::default();
        let unknown = observations.balance(Address::ZERO, at(0));
        assert_eq!((unknown.value, unknown.age, unknown.error), (None, None, None));
        observations.note_balance(Address::ZERO, U256::ONE, at(1));
        observations.note_balance_error(Address::ZERO, "no answer");
        let seen = observations.balance(Address::ZERO, at(4));
        let expected =
            (Some(U256::ONE), Some(Duration::from_secs(3)), Some("no answer".to_owned()));
        assert_eq!((seen.value, seen.age, seen.error), expected);
        observations.note_balance(Address::ZERO, U256::ZERO, at(5));
        assert_eq!(observations.balance(Address::ZERO, at(5)).error, None);
    }

    #[test]
    fn price_is_above_a_cap_until_it_is_read_below_it() {
        let observations = GasObservations::default();
        let cap = GasPrice::from_wei(10);
        let note = |wei: u64, seconds| {
            let price = Ok(GasPrice::from_wei(wei.into()));
            observations.note_price(price, iter::once(cap), at(seconds));
        };
        note(10, 1);
        note(12, 2);
        observations.note_price(Err("no answer".to_owned()), iter::once(cap), at(3));
        assert_eq!(observations.above_for(cap, at(5)), Some(Duration::from_secs(4)));
        assert_eq!(observations.price(at(5)).value, Some(GasPrice::from_wei(12)));
        note(9, 6);
        assert_eq!(observations.above_for(cap, at(7)), None);
    }
}
