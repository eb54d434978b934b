use std::{fmt, iter::successors, str::FromStr};

use secp256k1::{Message, SecretKey, ecdsa};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::PublicKey;

/// A secret key of secp256k1. Neither `Debug` nor errors show it.
///
/// ```
/// use grid_batch_protocol::SigningKey;
///
/// let key: SigningKey = "07".repeat(32).parse()?;
/// assert!(format!("{key:?}").contains(&key.public_key().to_string()));
/// assert!(!format!("{key:?}").contains("0707"));
/// # Ok::<(), grid_batch_protocol::SigningKeyError>(())
/// ```
#[derive(Clone)]
pub struct SigningKey(SecretKey);

/// Why a text or bytes are not a [`SigningKey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SigningKeyError {
    /// The text is not 32 bytes in hex.
    #[error("the secret key does not have 64 hex digits")]
    Text,
    /// The number is zero or too high.
    #[error("the secret key is not a number between 1 and the order of secp256k1")]
    Range,
}

impl SigningKey {
    /// Creates the key from its secret number.
    pub fn from_bytes(secret: [u8; 32]) -> Result<Self, SigningKeyError> {
        SecretKey::from_secret_bytes(secret).map(Self).map_err(|_| SigningKeyError::Range)
    }

    /// A key for tests: the same seed makes the same key. It is not secret.
    pub fn from_seed(seed: u64) -> Self {
        let hash = |bytes: &[u8]| -> [u8; 32] { Sha256::digest(bytes).into() };
        successors(Some(hash(&seed.to_be_bytes())), |last| Some(hash(last)))
            .find_map(|secret| Self::from_bytes(secret).ok())
            .expect("nearly every hash is a key")
    }

    /// The public key, which verifies the signatures.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.public_key())
    }

    /// Signs the SHA-256 of `message`. The same message has the same signature (RFC 6979), with the
    /// lower of the two possible values of s.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        let digest = Message::from_digest(Sha256::digest(message).into());
        ecdsa::sign(digest, &self.0).serialize_compact()
    }
}

impl FromStr for SigningKey {
    type Err = SigningKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut secret = [0; 32];
        match base16ct::mixed::decode(text, &mut secret) {
            Ok(decoded) if decoded.len() == 32 => Self::from_bytes(secret),
            _ => Err(SigningKeyError::Text),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey(public key {})", self.public_key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_key_is_refused_without_being_shown() {
        for (text, expected) in [
            ("5ec12e7".to_owned(), SigningKeyError::Text),
            ("5ec12e7x".repeat(8), SigningKeyError::Text),
            ("00".repeat(33), SigningKeyError::Text),
            ("00".repeat(32), SigningKeyError::Range),
            ("ff".repeat(32), SigningKeyError::Range),
        ] {
            let error = text.parse::<SigningKey>().unwrap_err();
            assert_eq!(error, expected);
            assert!(!error.to_string().contains(&text));
        }
    }

    #[test]
    fn same_seed_makes_the_same_key() {
        let [first, again, other] = [7, 7, 8].map(|seed| SigningKey::from_seed(seed).public_key());
        assert_eq!(first, again);
        assert_ne!(first, other);
    }
}
