use std::{collections::BTreeMap, time::Duration};

use thiserror::Error;

use crate::{Amount, LimitedSum, Payer};

/// How much may be scheduled from each pool. The default limits nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PaymentLimits {
    /// The largest amount of one withdrawal, by the pool's address.
    pub payment: BTreeMap<String, Amount>,
    /// The largest sum of amounts in [`PAYMENT_WINDOW`], by the pool's address.
    pub day: BTreeMap<String, Amount>,
}

/// How long an amount counts in the sum of its pool. It is counted in steps of
/// [`PAYMENT_WINDOW_STEP`], so it counts for up to one step longer.
pub const PAYMENT_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// The step in which amounts are counted.
pub const PAYMENT_WINDOW_STEP: Duration = Duration::from_secs(10 * 60);

/// Why a withdrawal or call is not scheduled: a payment limit would be exceeded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PaymentLimitError {
    /// The amount is above the limit for one withdrawal.
    #[error(
        "the amount {amount} is above the limit of {limit} for one withdrawal from the pool {pool}; request \
         less, or have the operator raise pools.*.maximum_payment"
    )]
    Payment {
        /// The pool.
        pool: String,
        /// The amount that was requested.
        amount: Amount,
        /// The limit.
        limit: Amount,
    },
    /// The payments of the last 24 hours leave too little.
    #[error(
        "{payer} has {left}{} left of its limit of {limit} in 24 hours, and {amount} were \
         requested; try again later, or have the operator {}", .payer.unit(), .payer.remedy()
    )]
    Day {
        /// What the payments are counted for.
        payer: Payer,
        /// The amount that was requested.
        amount: Amount,
        /// The limit.
        limit: Amount,
        /// What is left of the limit.
        left: Amount,
    },
}

impl PaymentLimits {
    /// Refuses an amount that is above the limit for one withdrawal.
    pub fn check_payment(&self, pool: &str, amount: &Amount) -> Result<(), PaymentLimitError> {
        match self.payment.get(pool) {
            Some(limit) if amount > limit => Err(PaymentLimitError::Payment {
                pool: pool.to_owned(),
                amount: amount.clone(),
                limit: limit.clone(),
            }),
            _ => Ok(()),
        }
    }
}

/// What may be scheduled within the limits as of the time of reading. The default limits nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PaymentBudget {
    /// The limits.
    pub limits: PaymentLimits,
    /// The sums that count towards the limits for a day, by the pool's address.
    pub scheduled: BTreeMap<String, Amount>,
}

impl PaymentBudget {
    /// Refuses an amount that the limits of its pool do not allow.
    pub fn check(&self, pool: &str, amount: &Amount) -> Result<(), PaymentLimitError> {
        self.limits.check_payment(pool, amount)?;
        let scheduled = self.scheduled.get(pool).cloned().unwrap_or_default();
        let per_day = self.limits.day.get(pool).cloned();
        let sum = LimitedSum { payer: Payer::Pool(pool.to_owned()), per_day };
        sum.check_day(amount, &scheduled)
    }

    /// Counts an amount.
    pub fn take(&mut self, pool: &str, amount: &Amount) {
        let scheduled = self.scheduled.entry(pool.to_owned()).or_default();
        *scheduled = scheduled.plus(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Amount {
        text.parse().unwrap()
    }

    fn limits() -> PaymentLimits {
        let of = |text: &str| BTreeMap::from([("pool".to_owned(), amount(text))]);
        PaymentLimits { payment: of("10"), day: of("25") }
    }

    fn sum_of(pool: &str) -> LimitedSum {
        let per_day = limits().day.get(pool).cloned();
        LimitedSum { payer: Payer::Pool(pool.to_owned()), per_day }
    }

    #[test]
    fn amount_up_to_the_limit_is_allowed() {
        assert_eq!(limits().check_payment("pool", &amount("10")), Ok(()));
        assert_eq!(sum_of("pool").check_day(&amount("10"), &amount("15")), Ok(()));
        assert_eq!(limits().check_payment("other", &amount("11")), Ok(()));
        assert_eq!(sum_of("other").check_day(&amount("10"), &amount("99")), Ok(()));
    }

    #[test]
    fn refusal_says_the_limit_and_what_is_left() {
        let error = limits().check_payment("pool", &amount("11")).unwrap_err().to_string();
        assert!(error.contains("the amount 11 is above the limit of 10 for"), "{error}");
        for (scheduled, left) in [("16", "has 9 left"), ("30", "has 0 left")] {
            let error = sum_of("pool").check_day(&amount("10"), &amount(scheduled)).unwrap_err();
            assert!(error.to_string().contains(left), "{error}");
        }
    }
}
