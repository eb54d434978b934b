use grid_batch_core::ServiceId;
use grid_batch_withdrawals::NonceOutcome;
use thiserror::Error;

/// Why a signed transaction or the outcome of a nonce cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SigningError {
    /// A number is larger than the databases can store.
    #[error("the {what} {value} is larger than {}, the largest that can be stored", i64::MAX)]
    TooLarge {
        /// What the number is.
        what: &'static str,
        /// The number.
        value: u128,
    },
    /// The signer used another nonce than the assigned one.
    #[error("the transaction was signed with the nonce {given}; the assigned nonce is {taken}")]
    OtherNonce {
        /// The nonce of the transaction.
        given: u64,
        /// The assigned nonce.
        taken: u64,
    },
    /// The transaction for a filler nonce is not a filler.
    #[error("the transaction signed with the nonce {nonce} is not a filler")]
    NoFiller {
        /// The nonce.
        nonce: u64,
    },
    /// A transaction was sent that is not stored.
    #[error("no transaction 0x{hash} is stored")]
    UnknownTransaction {
        /// Its hash, in hex digits.
        hash: String,
    },
    /// A nonce was closed that was never assigned.
    #[error("the nonce {nonce} of {service_id} was never assigned")]
    UnknownNonce {
        /// The service of the account.
        service_id: ServiceId,
        /// The nonce.
        nonce: u64,
    },
    /// A nonce was closed before, with another outcome.
    #[error(
        "the nonce {nonce} of {service_id} was {} and cannot become {}",
        describe(stored),
        describe(given)
    )]
    SpentOtherwise {
        /// The service of the account.
        service_id: ServiceId,
        /// The nonce.
        nonce: u64,
        /// The stored outcome.
        stored: NonceOutcome,
        /// The refused outcome.
        given: NonceOutcome,
    },
}

fn describe(outcome: &NonceOutcome) -> String {
    match outcome {
        NonceOutcome::Withdrawn { withdrawal_id } => {
            format!("used for the pool's withdrawal {withdrawal_id}")
        }
        NonceOutcome::Reverted => "reverted".to_owned(),
        NonceOutcome::Cancelled => "cancelled".to_owned(),
        NonceOutcome::UsedElsewhere => "used elsewhere".to_owned(),
    }
}
