//! The sums that payments are added to, and their limits.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

use crate::{Amount, NotAnAmountError, PaymentLimitError, PaymentLimits, Withdrawal};

/// What a sum of payments is counted for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payer {
    /// The pool with this address.
    Pool(String),
    /// The account with this service.
    Account(String),
    /// The access token with this id.
    Token(String),
}

impl Payer {
    /// The text by which its sums are stored: different for each.
    pub fn key(&self) -> Cow<'_, str> {
        match self {
            Self::Pool(address) => Cow::Borrowed(address),
            Self::Account(service) => Cow::Borrowed(service),
            Self::Token(id) => Cow::Owned(format!("token:{id}")),
        }
    }

    /// The unit of its sums, if it is known.
    pub(crate) const fn unit(&self) -> &'static str {
        match self {
            Self::Pool(_) => "",
            Self::Account(_) | Self::Token(_) => " wei",
        }
    }

    /// What the operator can do about its limit for a day.
    pub(crate) const fn remedy(&self) -> &'static str {
        match self {
            Self::Pool(_) => "raise pools.*.maximum_payments_per_day",
            Self::Account(_) => "raise the limit in gas_admins.*.may_send",
            Self::Token(_) => "create a token with a higher limit",
        }
    }
}

impl fmt::Display for Payer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(address) => write!(f, "the pool {address}"),
            Self::Account(service) => write!(f, "the account {service}"),
            Self::Token(id) => write!(f, "the token {id}"),
        }
    }
}

/// How much a payer may pay in [`PAYMENT_WINDOW`](crate::PAYMENT_WINDOW), as it is stored with a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayLimit {
    /// The payer.
    pub payer: Payer,
    /// The sum, in wei.
    pub per_day: String,
}

impl DayLimit {
    /// The limit of a payer.
    pub fn new(payer: Payer, per_day: &Amount) -> Self {
        Self { payer, per_day: per_day.to_string() }
    }
}

/// A sum that a payment is added to, and its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitedSum {
    /// What it is counted for.
    pub payer: Payer,
    /// The limit for a day.
    pub per_day: Option<Amount>,
}

impl Withdrawal {
    /// What its amount is counted for: its pool, or for a call what limits it.
    pub fn limited_sums(
        &self,
        limits: &PaymentLimits,
    ) -> Result<Vec<LimitedSum>, NotAnAmountError> {
        let Some(call) = &self.call else {
            let per_day = limits.day.get(&self.pool).cloned();
            return Ok(vec![LimitedSum { payer: Payer::Pool(self.pool.clone()), per_day }]);
        };
        let sum = |limit: &DayLimit| {
            let per_day = Some(limit.per_day.parse()?);
            Ok(LimitedSum { payer: limit.payer.clone(), per_day })
        };
        call.day_limits.iter().map(sum).collect()
    }
}

impl LimitedSum {
    /// Refuses an amount that exceeds, together with `scheduled`, the limit for a day.
    pub fn check_day(&self, amount: &Amount, scheduled: &Amount) -> Result<(), PaymentLimitError> {
        match &self.per_day {
            Some(limit) if scheduled.plus(amount) > *limit => Err(PaymentLimitError::Day {
                payer: self.payer.clone(),
                amount: amount.clone(),
                limit: limit.clone(),
                left: limit.minus(scheduled).unwrap_or_default(),
            }),
            _ => Ok(()),
        }
    }
}
