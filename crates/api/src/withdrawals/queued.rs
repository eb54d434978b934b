use std::fmt;

use axum::http::StatusCode;
use grid_batch_withdrawals::{Withdrawal, WithdrawalDetails, WithdrawalId, WithdrawalState};
use serde::Serialize;

use crate::{
    http::Links,
    withdrawals::{WithdrawalContext, WithdrawalRequestError},
};

/// What is stored as a withdrawal, and waits in the queue of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queued {
    /// A withdrawal from a pool.
    Withdrawal,
    /// Another transaction of the account.
    Transaction,
}

impl Queued {
    pub(crate) const fn of(withdrawal: &Withdrawal) -> Self {
        if withdrawal.call.is_some() { Self::Transaction } else { Self::Withdrawal }
    }

    /// The path of the one with this id.
    pub(crate) fn path(self, id: &WithdrawalId) -> String {
        match self {
            Self::Withdrawal => format!("/withdrawals/{id}"),
            Self::Transaction => format!("/v1/transactions/{id}"),
        }
    }

    /// The account in whose queue it waits, as its clients know it.
    pub(crate) const fn owner(self) -> &'static str {
        match self {
            Self::Withdrawal => "gas admin",
            Self::Transaction => "account",
        }
    }

    /// The state as responses and queries write it.
    pub(crate) const fn state_name(self, state: WithdrawalState) -> &'static str {
        match (self, state) {
            (Self::Transaction, WithdrawalState::Withdrawn) => "executed",
            _ => state.as_str(),
        }
    }

    /// The status of the answer to a request that schedules it.
    pub(crate) const fn scheduled_status(self) -> StatusCode {
        match self {
            Self::Withdrawal => StatusCode::CREATED,
            Self::Transaction => StatusCode::ACCEPTED,
        }
    }

    /// The error that there is none of this kind with this id.
    pub(crate) const fn not_found(self, id: WithdrawalId) -> WithdrawalRequestError {
        WithdrawalRequestError::QueuedNotFound { kind: self, id }
    }
}

impl fmt::Display for Queued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Withdrawal => "withdrawal",
            Self::Transaction => "transaction",
        })
    }
}

/// The answer about one of a kind.
pub(crate) trait QueuedJson: Serialize + Sized {
    const KIND: Queued;

    /// `None`: it is of another kind.
    fn of(
        details: &WithdrawalDetails,
        context: &WithdrawalContext,
        links: &Links<'_>,
    ) -> Option<Self>;
}
