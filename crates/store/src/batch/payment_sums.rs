//! The amounts that were scheduled from each pool, in steps of ten minutes: so the sum of a day is read
//! from few rows, however many withdrawals there were.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use grid_batch_core::Timestamp;
use grid_batch_withdrawals::{
    Amount, PAYMENT_WINDOW, PAYMENT_WINDOW_STEP, PaymentLimitError, PaymentLimits,
};

use super::payment_sum_rows::{SumKey, begin_step, lock_sums, sums_since, update_sums};
use crate::sql::{Connection, StoreError};

/// The sums of some pools, of which those of the present step are locked until the end of the
/// transaction.
pub(crate) struct PaymentSums {
    step: i64,
    pools: BTreeMap<String, PoolSum>,
}

#[derive(Default)]
struct PoolSum {
    /// In the steps before the present one, if the pool has a limit for a day.
    earlier: Amount,
    /// In the present step.
    present: Amount,
    has_changed: bool,
}

impl PaymentSums {
    /// Reads the sums of these pools.
    pub(crate) fn lock(
        connection: &mut Connection,
        limits: &PaymentLimits,
        pools: BTreeSet<&str>,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let step = step_of(now);
        let keys: Vec<SumKey<'_>> = pools.iter().map(|pool| (*pool, step)).collect();
        let mut sums = lock_sums(connection, &keys)?;
        if sums.len() < keys.len() {
            begin_step(connection, &keys, step - micros(PAYMENT_WINDOW))?;
            sums = lock_sums(connection, &keys)?;
        }
        let of_pool = |((pool, _), present)| (pool, PoolSum { present, ..PoolSum::default() });
        let mut sums: BTreeMap<String, PoolSum> = sums.into_iter().map(of_pool).collect();
        let limited: Vec<&str> =
            pools.into_iter().filter(|pool| limits.day.contains_key(*pool)).collect();
        for (pool, amount) in sums_since(connection, &limited, step - micros(PAYMENT_WINDOW), step)?
        {
            let sum = sums.entry(pool).or_default();
            sum.earlier = sum.earlier.plus(&amount);
        }
        Ok(Self { step, pools: sums })
    }

    /// Refuses an amount that the limits of its pool do not allow.
    pub(crate) fn check(
        &self,
        limits: &PaymentLimits,
        pool: &str,
        amount: &Amount,
    ) -> Result<(), PaymentLimitError> {
        limits.check_payment(pool, amount)?;
        let scheduled = self.pools.get(pool).map(|sum| sum.earlier.plus(&sum.present));
        limits.check_day(pool, amount, &scheduled.unwrap_or_default())
    }

    /// Adds an amount to the sum of its pool.
    pub(crate) fn add(&mut self, pool: &str, amount: &Amount) {
        let sum = self.pools.entry(pool.to_owned()).or_default();
        sum.present = sum.present.plus(amount);
        sum.has_changed = true;
    }

    /// The step in which the amounts count.
    pub(crate) fn step(&self) -> i64 {
        self.step
    }

    /// Stores the sums that have changed.
    pub(crate) fn write(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let changed = self.pools.iter().filter(|(_, sum)| sum.has_changed);
        let sums = changed.map(|(pool, sum)| ((pool.clone(), self.step), sum.present.clone()));
        update_sums(connection, &sums.collect())
    }
}

/// The begin of the step of this time.
pub(crate) fn step_of(now: Timestamp) -> i64 {
    let step = micros(PAYMENT_WINDOW_STEP);
    now.as_micros().div_euclid(step) * step
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// The sums of the pools in the last day.
pub(crate) fn sums_of_day(
    connection: &mut Connection,
    pools: &[&str],
    now: Timestamp,
) -> Result<BTreeMap<String, Amount>, StoreError> {
    let step = step_of(now);
    let mut sums: BTreeMap<String, Amount> = BTreeMap::new();
    for (pool, amount) in sums_since(connection, pools, step - micros(PAYMENT_WINDOW), i64::MAX)? {
        let sum = sums.entry(pool).or_default();
        *sum = sum.plus(&amount);
    }
    Ok(sums)
}

/// Subtracts amounts from the steps in which they count, as far as those are still stored.
pub(super) fn subtract(
    connection: &mut Connection,
    amounts: &[(SumKey<'_>, Amount)],
) -> Result<(), StoreError> {
    let keys: BTreeSet<SumKey<'_>> = amounts.iter().map(|(key, _)| *key).collect();
    let mut sums = lock_sums(connection, &Vec::from_iter(keys))?;
    for ((pool, step), amount) in amounts {
        if let Some(sum) = sums.get_mut(&((*pool).to_owned(), *step)) {
            *sum = sum.minus(amount).unwrap_or_default();
        }
    }
    update_sums(connection, &sums)
}
