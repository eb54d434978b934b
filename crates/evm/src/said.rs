use grid_batch_core::{LedgerStatus, Receipt, Spent, StatusReport};

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
        Self::just(LedgerStatus::Unknown)
    }

    pub(crate) fn seen(sighting: &Sighting<'_>) -> Self {
        Self::just(match sighting {
            Sighting::Mined(_) => LedgerStatus::Valid,
            Sighting::Waiting => LedgerStatus::Pending,
            Sighting::Elsewhere | Sighting::Gone => LedgerStatus::Unknown,
        })
    }

    pub(crate) fn of(spent: &Spent, note: Option<String>) -> Self {
        match spent {
            Spent::Withdrawn { .. } => Self::just(LedgerStatus::Committed),
            Spent::Reverted | Spent::Cancelled => {
                Self { status: LedgerStatus::Invalid, reason: note }
            }
            Spent::Elsewhere => Self::nothing(),
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
