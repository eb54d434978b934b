use grid_batch_core::{LedgerStatus, Receipt, StatusReport};
use grid_batch_withdrawals::NonceOutcome;

use crate::sighting::Sighting;

/// What is said of a withdrawal.
pub(crate) struct Said {
    status: LedgerStatus,
    reason: Option<String>,
}

impl Said {
    pub(crate) fn just(status: LedgerStatus) -> Self {
        Self { status, reason: None }
    }

    pub(crate) fn nothing() -> Self {
        Self::just(LedgerStatus::NotReported)
    }

    pub(crate) fn seen(sighting: &Sighting<'_>) -> Self {
        Self::just(match sighting {
            Sighting::Mined(_) => LedgerStatus::Valid,
            Sighting::Waiting => LedgerStatus::Pending,
            Sighting::Elsewhere | Sighting::Gone => LedgerStatus::NotReported,
        })
    }

    pub(crate) fn of(outcome: &NonceOutcome, note: Option<String>) -> Self {
        match outcome {
            NonceOutcome::Withdrawn { .. } => Self::just(LedgerStatus::Committed),
            NonceOutcome::Reverted | NonceOutcome::Cancelled => {
                Self { status: LedgerStatus::Invalid, reason: note }
            }
            NonceOutcome::UsedElsewhere => Self::nothing(),
        }
    }

    pub(crate) fn report(self, batch_id: &str) -> StatusReport {
        let receipt =
            |error_message| Receipt { transaction_id: None, error_message, error_data: Vec::new() };
        StatusReport {
            batch_id: batch_id.to_owned(),
            status: self.status,
            receipts: self.reason.map(receipt).into_iter().collect(),
        }
    }
}
