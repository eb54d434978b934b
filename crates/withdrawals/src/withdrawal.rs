use std::{fmt, str::FromStr};

use grid_batch_core::ServiceId;

use crate::{RewardId, WithdrawalId};

/// What a pool is to pay to whom, as it is stored.
///
/// Addresses and the amount are texts in the one form that the chain's [`WithdrawalRules`] give
/// them: what is the same is the same text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawal {
    /// Its id: our own, and not the one that the pool gives it.
    pub id: WithdrawalId,
    /// The service that orders it: the pool's gas admin.
    pub service_id: ServiceId,
    /// How it came to be.
    pub kind: WithdrawalKind,
    /// The reward that it pays, where it pays one.
    pub reward_id: Option<RewardId>,
    /// The pool that pays.
    pub pool: String,
    /// Whom it pays.
    pub beneficiary: String,
    /// How much, in the smallest unit of what the pool pays in.
    pub amount: String,
}

/// How a withdrawal came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WithdrawalKind {
    /// It was asked for as such.
    Propose,
    /// A member claimed a reward.
    Claim,
    /// A member was given a reward.
    Give,
}

impl WithdrawalKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Propose, Self::Claim, Self::Give];

    /// The kind as it is written in databases and answers.
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
            .ok_or_else(|| format!("{text:?} is no kind of withdrawal"))
    }
}
