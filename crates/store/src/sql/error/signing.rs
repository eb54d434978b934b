use grid_batch_core::ServiceId;
use grid_batch_withdrawals::NonceOutcome;
use thiserror::Error;

/// Why a signed transaction or the outcome of a nonce cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SigningError {
    /// A number does not fit into a column.
    #[error("{what} {value} is too large to store; the maximum is {}", i64::MAX)]
    TooLarge {
        /// What the number is.
        what: &'static str,
        /// The number.
        value: u128,
    },
    /// The transaction was signed with another nonce than the one assigned.
    #[error("the transaction is signed with nonce {signed}; nonce {assigned} was assigned")]
    WrongNonce {
        /// The nonce of the transaction.
        signed: u64,
        /// The nonce that was assigned.
        assigned: u64,
    },
    /// The transaction that was meant to fill a nonce is a payment.
    #[error("the transaction to fill nonce {nonce} is not a filler")]
    NotAFiller {
        /// The nonce.
        nonce: u64,
    },
    /// The transaction is not stored.
    #[error("transaction 0x{hash} is not stored")]
    UnknownTransaction {
        /// Its hash, in hex digits.
        hash: String,
    },
    /// The nonce was never assigned.
    #[error("nonce {nonce} of {service_id} was never assigned")]
    UnassignedNonce {
        /// The account's service.
        service_id: ServiceId,
        /// The nonce.
        nonce: u64,
    },
    /// A different final outcome of the nonce is stored already.
    #[error(
        "nonce {nonce} of {service_id} is stored as {}; it cannot be changed to {}",
        describe(stored),
        describe(given)
    )]
    OutcomeConflict {
        /// The account's service.
        service_id: ServiceId,
        /// The nonce.
        nonce: u64,
        /// The outcome that is stored.
        stored: NonceOutcome,
        /// The outcome that was to be stored.
        given: NonceOutcome,
    },
}

fn describe(outcome: &NonceOutcome) -> String {
    match outcome {
        NonceOutcome::Withdrawn { withdrawal_id } => {
            format!("withdrawn with the pool's id {withdrawal_id}")
        }
        NonceOutcome::Executed { .. } => "executed".to_owned(),
        NonceOutcome::WithoutEvent => "mined without the event of the pool".to_owned(),
        NonceOutcome::Reverted => "reverted".to_owned(),
        NonceOutcome::Cancelled => "cancelled".to_owned(),
        NonceOutcome::UsedElsewhere => "used elsewhere".to_owned(),
    }
}
