use std::{fmt, str::FromStr};

use alloy_primitives::{Address, B256, Signature, keccak256};
use futures_core::future::BoxFuture;
use secp256k1::{
    Message, SecretKey,
    ecdsa::{RecoverableSignature, RecoveryId},
};
use thiserror::Error;

use super::transaction_signer::{SignerError, TransactionSigner};

/// The secret key of a gas admin, in the memory of this process. Neither `Debug` nor an error ever shows it.
///
/// ```
/// use grid_batch_evm::GasAdminKey;
///
/// let key: GasAdminKey = "07".repeat(32).parse()?;
/// assert!(format!("{key:?}").contains(&key.address().to_string()));
/// assert!(!format!("{key:?}").contains("0707"));
/// # Ok::<(), grid_batch_evm::GasAdminKeyError>(())
/// ```
#[derive(Clone)]
pub struct GasAdminKey {
    secret: SecretKey,
    address: Address,
}

/// Why a text is not a [`GasAdminKey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GasAdminKeyError {
    /// The text is not 32 bytes in hex.
    #[error("the secret key is not 64 hex digits")]
    Text,
    /// The number is zero or too large.
    #[error("the secret key is not a number between 1 and the order of secp256k1")]
    Range,
}

impl GasAdminKey {
    /// The account's address.
    pub fn address(&self) -> Address {
        self.address
    }

    pub(super) fn from_bytes(bytes: [u8; 32]) -> Result<Self, GasAdminKeyError> {
        let secret = SecretKey::from_secret_bytes(bytes).map_err(|_| GasAdminKeyError::Range)?;
        let public = secret.public_key().serialize_uncompressed();
        Ok(Self { secret, address: Address::from_raw_public_key(&public[1..]) })
    }

    /// Signs a hash. Signatures are deterministic (RFC 6979), so signing a transaction again gives
    /// the same bytes.
    fn sign_hash(&self, hash: B256) -> Signature {
        let message = Message::from_digest(hash.0);
        let signature = RecoverableSignature::sign_ecdsa_recoverable(message, &self.secret);
        let (id, bytes) = signature.serialize_compact();
        // The ids two and three occur once in 2^127 signatures, and no chain accepts them.
        let is_odd = id == RecoveryId::One;
        Signature::from_bytes_and_parity(&bytes, is_odd)
    }
}

impl TransactionSigner for GasAdminKey {
    fn address(&self) -> Address {
        self.address
    }

    fn sign<'a>(&'a self, payload: &'a [u8]) -> BoxFuture<'a, Result<Signature, SignerError>> {
        Box::pin(async move { Ok(self.sign_hash(keccak256(payload))) })
    }
}

impl FromStr for GasAdminKey {
    type Err = GasAdminKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let mut bytes = [0; 32];
        let digits = text.strip_prefix("0x").unwrap_or(text);
        if digits.len() != 2 * bytes.len() || base16ct::mixed::decode(digits, &mut bytes).is_err() {
            return Err(GasAdminKeyError::Text);
        }
        Self::from_bytes(bytes)
    }
}

impl Drop for GasAdminKey {
    fn drop(&mut self) {
        self.secret.non_secure_erase();
    }
}

impl fmt::Debug for GasAdminKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GasAdminKey(of {})", self.address)
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::address;

    use super::*;
    use crate::signer::test_key::{DEVELOPMENT, key, recover};

    #[test]
    fn address_is_derived_from_the_key() {
        let expected = address!("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
        let upper = DEVELOPMENT.to_uppercase();
        for text in [DEVELOPMENT, &upper, &format!("0x{DEVELOPMENT}"), &format!(" {DEVELOPMENT}\n")]
        {
            assert_eq!(text.parse::<GasAdminKey>().unwrap().address(), expected);
        }
    }

    #[test]
    fn signature_recovers_to_the_address() {
        for text in ["", "a", "b", "c", "d"] {
            let hash = keccak256(text);
            let signature = key().sign_hash(hash);
            assert_eq!(recover(&signature, hash).unwrap(), key().address());
            assert_eq!(signature, signature.normalized_s());
            assert_eq!(signature, key().sign_hash(hash));
        }
    }

    #[test]
    fn invalid_key_is_refused_without_being_shown() {
        for (text, expected) in [
            ("5ec12e7".to_owned(), GasAdminKeyError::Text),
            ("5ec12e7x".repeat(8), GasAdminKeyError::Text),
            ("00".repeat(33), GasAdminKeyError::Text),
            (format!("0x0x{}", "11".repeat(31)), GasAdminKeyError::Text),
            ("00".repeat(32), GasAdminKeyError::Range),
            ("ff".repeat(32), GasAdminKeyError::Range),
        ] {
            let error = text.parse::<GasAdminKey>().unwrap_err();
            assert_eq!(error, expected);
            assert!(!error.to_string().contains(&text));
        }
    }

    #[test]
    fn debug_shows_only_the_address() {
        assert_eq!(
            format!("{:?}", key()),
            "GasAdminKey(of 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266)"
        );
    }
}
