use grid_batch_core::LedgerStatus;
use grid_batch_withdrawals::NonceOutcome;

use crate::nonce::NonceObservation;

/// The status of a withdrawal, and the reason if it failed.
pub(super) type WithdrawalStatus = (LedgerStatus, Option<String>);

pub(super) const NOT_REPORTED: WithdrawalStatus = (LedgerStatus::NotReported, None);

pub(super) fn of_observation(observation: &NonceObservation<'_>) -> WithdrawalStatus {
    match observation {
        NonceObservation::Mined(_) => (LedgerStatus::Valid, None),
        NonceObservation::Pending => (LedgerStatus::Pending, None),
        NonceObservation::UsedElsewhere | NonceObservation::NotFound => NOT_REPORTED,
    }
}

pub(super) fn of_outcome(outcome: &NonceOutcome, note: Option<String>) -> WithdrawalStatus {
    match outcome {
        // Its transaction is applied; what it did is not a question of the ledger's status.
        NonceOutcome::Withdrawn { .. } | NonceOutcome::WithoutEvent => {
            (LedgerStatus::Committed, None)
        }
        NonceOutcome::Reverted | NonceOutcome::Cancelled => (LedgerStatus::Invalid, note),
        NonceOutcome::UsedElsewhere => NOT_REPORTED,
    }
}
