use grid_batch_core::ServiceId;
use grid_batch_withdrawals::NonceOutcome;
use thiserror::Error;

/// Why what was signed, or what became of it, cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SigningError {
    /// A number is larger than the databases keep.
    #[error("the {what} {value} is more than {}, the most that can be stored", i64::MAX)]
    TooLarge {
        /// What it counts.
        what: &'static str,
        /// The number.
        value: u128,
    },
    /// Another nonce was signed with than the one that was taken.
    #[error("signed with the nonce {given}, where {taken} was taken")]
    OtherNonce {
        /// The one that was signed with.
        given: u64,
        /// The one to sign with.
        taken: u64,
    },
    /// What was to fill a nonce would pay.
    #[error("what is signed with the nonce {nonce} does not only use it up")]
    NoFiller {
        /// The nonce.
        nonce: u64,
    },
    /// A transaction was sent that was never stored.
    #[error("no transaction 0x{hash} is stored")]
    UnknownTransaction {
        /// Its hash, in hex digits.
        hash: String,
    },
    /// A nonce was spent that was never taken.
    #[error("the nonce {nonce} of {service_id} was never taken")]
    UnknownNonce {
        /// Whose.
        service_id: ServiceId,
        /// The nonce.
        nonce: u64,
    },
    /// Something else was written down of a nonce before, for good.
    #[error(
        "the nonce {nonce} of {service_id} was {} for good, and cannot be {}",
        in_words(stored),
        in_words(given)
    )]
    SpentOtherwise {
        /// Whose.
        service_id: ServiceId,
        /// The nonce.
        nonce: u64,
        /// What was written before.
        stored: NonceOutcome,
        /// What was to be written.
        given: NonceOutcome,
    },
}

fn in_words(spent: &NonceOutcome) -> String {
    match spent {
        NonceOutcome::Withdrawn { withdrawal_id } => {
            format!("spent on the pool's withdrawal {withdrawal_id}")
        }
        NonceOutcome::Reverted => "spent in vain".to_owned(),
        NonceOutcome::Cancelled => "cancelled".to_owned(),
        NonceOutcome::UsedElsewhere => "used elsewhere".to_owned(),
    }
}

/// A number as the databases keep it.
pub(super) fn stored(what: &'static str, value: impl Into<u128>) -> Result<i64, SigningError> {
    let value = value.into();
    i64::try_from(value).map_err(|_| SigningError::TooLarge { what, value })
}
