use std::{fmt, str::FromStr};

use grid_batch_core::Excerpt;
use grid_batch_core::batches::SignerId;
use secp256k1::{Message, ecdsa};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// A public key of secp256k1: 33 bytes, written as 66 lower-case hex digits.
///
/// ```
/// use grid_batch_protocol::{PublicKey, SigningKey};
///
/// let key = SigningKey::from_seed(1);
/// let public: PublicKey = key.public_key().to_string().parse()?;
/// assert!(public.verify(b"hello", &key.sign(b"hello")).is_ok());
/// assert!(public.verify(b"adieu", &key.sign(b"hello")).is_err());
/// # Ok::<(), grid_batch_protocol::PublicKeyError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub(crate) secp256k1::PublicKey);

/// Why a text is not a [`PublicKey`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PublicKeyError {
    /// The text does not have the format of a key.
    #[error("the public key {value} does not have 66 lower-case hex digits")]
    Text {
        /// The beginning of the text.
        value: Excerpt,
    },
    /// The text has the format of a key, but there is no such key.
    #[error("the public key {value} is not a point of secp256k1")]
    Point {
        /// The beginning of the text.
        value: Excerpt,
    },
}

/// Why a signature is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The signature is correct, but has the higher of the two possible values of s.
    #[error(
        "the signature has the higher of the two possible values of s; ledgers accept only the \
         lower one"
    )]
    HighS,
    /// The bytes were changed, or another key signed them, or it is not a signature.
    #[error("it is not a signature of these bytes by key {key}")]
    Wrong {
        /// The expected signer.
        key: PublicKey,
    },
}

impl PublicKey {
    /// The key as core's [`SignerId`], which cannot verify signatures.
    pub fn id(&self) -> SignerId {
        SignerId::from_bytes(self.0.serialize())
    }

    /// Verifies a signature over the SHA-256 of `message`.
    pub fn verify(&self, message: &[u8], signature: &[u8; 64]) -> Result<(), SignatureError> {
        let wrong = || SignatureError::Wrong { key: *self };
        let digest = Message::from_digest(Sha256::digest(message).into());
        let mut signature = ecdsa::Signature::from_compact(signature).map_err(|_| wrong())?;
        if ecdsa::verify(&signature, digest, &self.0).is_ok() {
            return Ok(());
        }
        signature.normalize_s();
        match ecdsa::verify(&signature, digest, &self.0) {
            Ok(()) => Err(SignatureError::HighS),
            Err(_) => Err(wrong()),
        }
    }
}

impl FromStr for PublicKey {
    type Err = PublicKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let value = || Excerpt::of(text);
        let mut bytes = [0; 33];
        match base16ct::lower::decode(text, &mut bytes) {
            Ok(decoded) if decoded.len() == 33 => {}
            _ => return Err(PublicKeyError::Text { value: value() }),
        }
        secp256k1::PublicKey::from_byte_array_compressed(bytes)
            .map(Self)
            .map_err(|_| PublicKeyError::Point { value: value() })
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&base16ct::lower::encode_string(&self.0.serialize()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SigningKey;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_a_key_or_an_error(text in prop_oneof!["\\PC*", "0[23][0-9a-f]{64}"]) {
            if let Ok(key) = text.parse::<PublicKey>() {
                prop_assert_eq!(key.to_string(), text);
            }
        }

        #[test]
        fn any_64_bytes_are_refused_as_a_signature(halves in any::<[[u8; 32]; 2]>()) {
            let signature = halves.as_flattened().try_into().unwrap();
            let key = SigningKey::from_seed(1).public_key();
            prop_assert!(key.verify(b"message", signature).is_err());
        }
    }

    #[test]
    fn key_has_one_text_form() {
        let key = SigningKey::from_seed(1).public_key().to_string();
        for text in ["", "02", &key[2..], &key.to_uppercase(), &format!("{key}00")] {
            let error = text.parse::<PublicKey>().unwrap_err();
            assert!(matches!(error, PublicKeyError::Text { .. }), "{error}");
        }
        let error = "f".repeat(66).parse::<PublicKey>().unwrap_err();
        assert!(matches!(error, PublicKeyError::Point { .. }), "{error}");
    }
}
