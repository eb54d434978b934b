use std::{fmt, str::FromStr};

use grid_batch_core::ServiceId;
use grid_batch_core::batches::TraceContext;

use crate::{Call, RewardId, WithdrawalId};

/// A payment from a pool to a beneficiary, as it is stored.
///
/// Addresses and the amount are in the canonical form of the chain's
/// [`WithdrawalRules`](crate::WithdrawalRules): equal values are equal texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawal {
    /// Its id. It is not the id that the pool gives it.
    pub id: WithdrawalId,
    /// The service that orders it: the pool's gas admin.
    pub service_id: ServiceId,
    /// How it was requested.
    pub kind: WithdrawalKind,
    /// The reward that it pays, if it pays one.
    pub reward_id: Option<RewardId>,
    /// The pool that pays.
    pub pool: String,
    /// The account that is paid.
    pub beneficiary: String,
    /// The amount, in the smallest unit of the pool's currency.
    pub amount: String,
    /// The idempotency key of the request, if it had one.
    pub idempotency_key: Option<String>,
    /// The call, if it is no withdrawal from a pool but another transaction of the account.
    pub call: Option<Call>,
    /// The trace of the request, for its batch. It is not set in what a store returns.
    pub trace: Option<TraceContext>,
}

/// How a withdrawal was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WithdrawalKind {
    /// It was requested directly.
    Propose,
    /// A member claimed a reward.
    Claim,
    /// A reward was given to a member.
    Give,
}

impl WithdrawalKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Propose, Self::Claim, Self::Give];

    /// The kind as it is written in databases and responses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Propose => "propose",
            Self::Claim => "claim",
            Self::Give => "give",
        }
    }
}

impl fmt::Display for WithdrawalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for WithdrawalKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| format!("{text:?} is not a kind of withdrawal"))
    }
}
