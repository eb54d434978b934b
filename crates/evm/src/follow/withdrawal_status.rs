use grid_batch_core::{LedgerStatus, Receipt, StatusReport};
use grid_batch_withdrawals::NonceOutcome;

use crate::nonce::NonceObservation;

/// The status of a withdrawal, with a reason if it failed.
pub(super) struct WithdrawalStatus {
    status: LedgerStatus,
    reason: Option<String>,
}

impl WithdrawalStatus {
    pub(super) fn without_reason(status: LedgerStatus) -> Self {
        Self { status, reason: None }
    }

    pub(super) fn not_reported() -> Self {
        Self::without_reason(LedgerStatus::NotReported)
    }

    pub(super) fn from_observation(observation: &NonceObservation<'_>) -> Self {
        Self::without_reason(match observation {
            NonceObservation::Mined(_) => LedgerStatus::Valid,
            NonceObservation::Pending => LedgerStatus::Pending,
            NonceObservation::UsedElsewhere | NonceObservation::NotFound => {
                LedgerStatus::NotReported
            }
        })
    }

    pub(super) fn from_outcome(outcome: &NonceOutcome, note: Option<String>) -> Self {
        match outcome {
            // Its transaction is applied; what it did is not a question of the ledger's status.
            NonceOutcome::Withdrawn { .. } | NonceOutcome::WithoutEvent => {
                Self::without_reason(LedgerStatus::Committed)
            }
            NonceOutcome::Reverted | NonceOutcome::Cancelled => {
                Self { status: LedgerStatus::Invalid, reason: note }
            }
            NonceOutcome::UsedElsewhere => Self::not_reported(),
        }
    }

    pub(super) fn into_report(self, batch_id: &str) -> StatusReport {
        let receipt =
            |error_message| Receipt { transaction_id: None, error_message, error_data: Vec::new() };
        StatusReport {
            batch_id: batch_id.to_owned(),
            status: self.status,
            receipts: self.reason.map(receipt).into_iter().collect(),
        }
    }
}
