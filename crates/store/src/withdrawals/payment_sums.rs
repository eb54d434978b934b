//! The amounts that were scheduled for each payer, in steps of ten minutes, so that the sum of a day is read from few
//! rows, however many payments there were. The column `pool` has the key of the payer.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use grid_batch_core::Timestamp;
use grid_batch_withdrawals::{
    Amount, LimitedSum, PAYMENT_WINDOW, PAYMENT_WINDOW_STEP, PaymentLimitError,
};

use crate::sql::{Connection, Rows, Statement, StoreError, claim_handle::micros};

/// The sums of some payers. Those of the present step are locked until the end of the
/// transaction.
pub(crate) struct PaymentSums {
    step: i64,
    payers: BTreeMap<String, PayerSum>,
}

#[derive(Default)]
struct PayerSum {
    /// The sum of the steps before the present one, if the payer has a limit for a day.
    earlier: Amount,
    /// The sum of the present step.
    present: Amount,
    has_changed: bool,
}

impl PaymentSums {
    /// Reads the sums that these payments are added to.
    pub(crate) fn lock<'a>(
        connection: &mut Connection,
        sums: impl IntoIterator<Item = &'a LimitedSum>,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let step = step_of(now);
        let payers: BTreeMap<Cow<'_, str>, bool> =
            sums.into_iter().map(|it| (it.payer.key(), it.per_day.is_some())).collect();
        let keys: Vec<SumKey<'_>> = payers.keys().map(|payer| (&**payer, step)).collect();
        let mut stored = lock_sums(connection, &keys)?;
        if stored.len() < keys.len() {
            begin_step(connection, &keys, step - micros(PAYMENT_WINDOW))?;
            stored = lock_sums(connection, &keys)?;
        }
        let of_payer = |((payer, _), present)| (payer, PayerSum { present, ..PayerSum::default() });
        let mut sums: BTreeMap<String, PayerSum> = stored.into_iter().map(of_payer).collect();
        let limited = payers.iter().filter(|(_, is_limited)| **is_limited);
        let limited: Vec<&str> = limited.map(|(payer, _)| &**payer).collect();
        for (payer, amount) in
            sums_since(connection, &limited, step - micros(PAYMENT_WINDOW), step)?
        {
            let sum = sums.entry(payer).or_default();
            sum.earlier = sum.earlier.plus(&amount);
        }
        Ok(Self { step, payers: sums })
    }

    /// Refuses an amount that exceeds the limit of one of its payers.
    pub(crate) fn check(
        &self,
        sums: &[LimitedSum],
        amount: &Amount,
    ) -> Result<(), PaymentLimitError> {
        sums.iter().try_for_each(|limited| {
            let sum = self.payers.get(&*limited.payer.key());
            let scheduled = sum.map(|sum| sum.earlier.plus(&sum.present)).unwrap_or_default();
            limited.check_day(amount, &scheduled)
        })
    }

    /// Adds an amount to the sums of its payers.
    pub(crate) fn add(&mut self, sums: &[LimitedSum], amount: &Amount) {
        for limited in sums {
            let sum = self.payers.entry(limited.payer.key().into_owned()).or_default();
            sum.present = sum.present.plus(amount);
            sum.has_changed = true;
        }
    }

    /// The step in which the amounts are counted.
    pub(crate) fn step(&self) -> i64 {
        self.step
    }

    /// Stores the sums that have changed.
    pub(crate) fn write(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let changed = self.payers.iter().filter(|(_, sum)| sum.has_changed);
        let sums = changed.map(|(payer, sum)| ((payer.clone(), self.step), sum.present.clone()));
        update_sums(connection, &sums.collect())
    }
}

/// The start of the step that contains this time.
pub(crate) fn step_of(now: Timestamp) -> i64 {
    let step = micros(PAYMENT_WINDOW_STEP);
    now.as_micros().div_euclid(step) * step
}

/// The sums of the pools in the last 24 hours.
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

/// Subtracts amounts from the steps in which they were counted, if these are still stored.
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

/// The key of a payer and the start of a step.
type SumKey<'a> = (&'a str, i64);

/// The owned form of a `SumKey`, as it is read.
type OwnedSumKey = (String, i64);

fn lock_sums(
    connection: &mut Connection,
    keys: &[SumKey<'_>],
) -> Result<BTreeMap<OwnedSumKey, Amount>, StoreError> {
    let lock = connection.dialect().locking("for update of p");
    let rows: Vec<(String, i64, String)> = connection.load_row_tuples(
        format!(
            "-- lock_payment_sums
             select p.pool, p.started_at, p.amount
             from {{x}} join payment_sums p on p.pool = x.pool and p.started_at = x.started_at
             order by p.pool, p.started_at {lock}"
        ),
        key_rows(keys.iter().copied()),
    )?;
    rows.into_iter().map(|(pool, step, sum)| Ok(((pool, step), amount(&sum)?))).collect()
}

fn sums_since(
    connection: &mut Connection,
    pools: &[&str],
    since: i64,
    before: i64,
) -> Result<Vec<(String, Amount)>, StoreError> {
    let rows: Vec<(String, i64, String)> = connection.load_row_tuples(
        "-- payment_sums_since
         select p.pool, p.started_at, p.amount
         from {x} join payment_sums p on p.pool = x.pool
             and p.started_at >= x.since and p.started_at < x.before",
        Rows::default()
            .text("pool", pools.iter().copied())
            .long("since", pools.iter().map(|_| since))
            .long("before", pools.iter().map(|_| before)),
    )?;
    rows.into_iter().map(|(pool, _, sum)| Ok((pool, amount(&sum)?))).collect()
}

fn update_sums(
    connection: &mut Connection,
    sums: &BTreeMap<OwnedSumKey, Amount>,
) -> Result<(), StoreError> {
    let amounts: Vec<String> = sums.values().map(ToString::to_string).collect();
    connection.execute_rows(
        "-- update_payment_sums
         update payment_sums as p set amount = x.amount
         from {x} where p.pool = x.pool and p.started_at = x.started_at",
        key_rows(sums.keys().map(|(pool, step)| (pool.as_str(), *step)))
            .text("amount", amounts.iter().map(String::as_str)),
    )
}

/// Stores the sums of a step that has just begun, unless another transaction has done so, and removes expired sums of
/// the same payers.
fn begin_step(
    connection: &mut Connection,
    keys: &[SumKey<'_>],
    expired_before: i64,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- begin_payment_sums
         insert into payment_sums (pool, started_at, amount)
         select pool, started_at, '0' from {x} where true order by pool
         on conflict do nothing",
        key_rows(keys.iter().copied()),
    )?;
    let remove = Statement::new(
        "-- remove_payment_sums
         delete from payment_sums
         where pool in (select x.pool from {x}) and started_at < ?",
    )
    .long(expired_before)
    .rows(Rows::default().text("pool", keys.iter().map(|(pool, _)| *pool)));
    connection.execute(&remove).map(drop)
}

fn key_rows<'a>(keys: impl Iterator<Item = SumKey<'a>> + Clone) -> Rows<'a> {
    Rows::default()
        .text("pool", keys.clone().map(|(pool, _)| pool))
        .long("started_at", keys.map(|(_, step)| step))
}

fn amount(sum: &str) -> Result<Amount, StoreError> {
    sum.parse().map_err(StoreError::corrupt)
}
