use std::{fmt, str::FromStr};

use grid_batch_core::tokens::TokenId;
use grid_batch_core::{Hex, InternalError};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// A token that a client sends: `gb_`, its id, `_`, and a secret of 256 random bits.
///
/// Only [`secret`](Self::secret) shows the whole token.
///
/// ```
/// use grid_batch_api::AccessToken;
///
/// let token = AccessToken::generate()?;
/// let parsed: AccessToken = token.secret().parse()?;
/// assert_eq!((parsed.id(), parsed.secret_hash()), (token.id(), token.secret_hash()));
/// assert!(!format!("{token:?}").contains(&token.secret()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AccessToken {
    id: TokenId,
    secret: [u8; 32],
}

/// Why a text is not an [`AccessToken`]. It does not show the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a token is gb_, an id of 16 hex digits, _, and 64 hex digits")]
pub struct AccessTokenError;

impl AccessToken {
    pub(super) const PREFIX: &'static str = "gb_";

    /// A new token.
    pub fn generate() -> Result<Self, InternalError> {
        let (mut id, mut secret) = ([0; TokenId::BYTES], [0; 32]);
        for bytes in [&mut id[..], &mut secret[..]] {
            getrandom::fill(bytes).map_err(|error| {
                InternalError::new(format!(
                    "the operating system provides no random numbers: {error}"
                ))
            })?;
        }
        Ok(Self { id: TokenId::from_bytes(id), secret })
    }

    /// The part of the token that may be shown.
    pub fn id(&self) -> TokenId {
        self.id
    }

    /// The SHA-256 of the secret, which is what is stored.
    pub fn secret_hash(&self) -> [u8; 32] {
        Sha256::digest(self.secret).into()
    }

    /// The whole token, for its client and nowhere else.
    pub fn secret(&self) -> String {
        format!("{}{}_{}", Self::PREFIX, self.id, Hex(&self.secret))
    }
}

impl FromStr for AccessToken {
    type Err = AccessTokenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.strip_prefix(Self::PREFIX).ok_or(AccessTokenError)?;
        let (id, digits) = rest.split_once('_').ok_or(AccessTokenError)?;
        let id = id.parse().map_err(|_| AccessTokenError)?;
        let mut secret = [0; 32];
        let digits = digits.as_bytes();
        if digits.len() != 2 * secret.len() {
            return Err(AccessTokenError);
        }
        for (byte, pair) in secret.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self { id, secret })
    }
}

fn digit(digit: u8) -> Result<u8, AccessTokenError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(AccessTokenError),
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessToken({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_texts_are_refused() {
        let token = AccessToken::generate().unwrap().secret();
        assert_eq!(token.len(), 3 + 16 + 1 + 64);
        let upper = token.to_uppercase();
        let long = token.clone() + "0";
        let texts = ["", "gb_", &token[1..], &token[..token.len() - 1], &upper, &long];
        for text in texts.into_iter().chain(["gb_00_11", "gb_0123456789abcdef_é"]) {
            assert!(text.parse::<AccessToken>().is_err(), "{text}");
        }
    }

    #[test]
    fn two_tokens_differ() {
        let [one, two] = [(); 2].map(|()| AccessToken::generate().unwrap());
        assert!(one.id() != two.id() && one.secret_hash() != two.secret_hash());
    }
}
