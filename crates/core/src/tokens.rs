//! Tokens of clients.

use std::{collections::BTreeSet, fmt, str::FromStr};

use thiserror::Error;

use crate::operators::OperatorRequest;
use crate::{BatchResult, Excerpt, Hex, Timestamp};

/// A kind of request that a client must be allowed to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessScope {
    /// Submitting batches, withdrawals and rewards.
    Submit,
    /// Reading what is stored.
    Read,
    /// What operators do.
    Operate,
}

/// Why a text is not an [`AccessScope`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{value} is not a scope; it must be submit, read or operate")]
pub struct AccessScopeError {
    /// The beginning of the text.
    pub value: Excerpt,
}

impl AccessScope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Submit, Self::Read, Self::Operate];

    /// The name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Read => "read",
            Self::Operate => "operate",
        }
    }
}

impl fmt::Display for AccessScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for AccessScope {
    type Err = AccessScopeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let scope = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        scope.ok_or_else(|| AccessScopeError { value: Excerpt::of(text) })
    }
}

/// The public part of an access token, by which it is found and named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId([u8; Self::BYTES]);

/// Why a text is not a [`TokenId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the id of a token has 16 lower-case hex digits")]
pub struct TokenIdError;

impl TokenId {
    /// The number of bytes.
    pub const BYTES: usize = 8;

    /// The id of these bytes.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl FromStr for TokenId {
    type Err = TokenIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 2 * Self::BYTES || !text.bytes().all(is_digit) {
            return Err(TokenIdError);
        }
        let value = u64::from_str_radix(text, 16).map_err(|_| TokenIdError)?;
        Ok(Self(value.to_be_bytes()))
    }
}

/// What is stored of an access token when it is created, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// The id.
    pub id: TokenId,
    /// What people call it: unique among the tokens that are not revoked.
    pub name: String,
    /// The SHA-256 of the secret, which has 256 random bits.
    pub secret_hash: [u8; 32],
    /// What it allows.
    pub scopes: BTreeSet<AccessScope>,
    /// The services for which it is valid: service ids, in which `*` stands for any characters.
    pub services: Vec<String>,
    /// What it may send from accounts beside withdrawals, in the words of the ledger. Empty: what the accounts may.
    pub may_send: Vec<String>,
    /// When it expires. `None`: never.
    pub expires_at: Option<Timestamp>,
}

/// An access token as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// What was stored when it was created.
    pub token: NewToken,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last used, accurate to a few minutes.
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl StoredToken {
    /// Whether it is valid at this time.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.token.expires_at.is_none_or(|expiry| now < expiry)
    }
}

/// Creates, lists and revokes access tokens.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait TokenStore: Send + Sync {
    /// Stores an access token, unless another one that is not revoked has its name. Returns whether it did.
    fn create_token(&self, token: &NewToken, request: &OperatorRequest) -> BatchResult<bool>;

    /// Up to `limit` access tokens after `after`, ordered by id. Expired and revoked tokens are included.
    fn tokens(&self, after: Option<TokenId>, limit: usize) -> BatchResult<Vec<StoredToken>>;

    /// Revokes the access token with this id or name. Returns it as it was; `None` if there is no such token, or it is
    /// revoked already.
    fn revoke_token(
        &self,
        id_or_name: &str,
        request: &OperatorRequest,
    ) -> BatchResult<Option<StoredToken>>;

    /// The access tokens that are not revoked. Some may have expired.
    fn unrevoked_tokens(&self) -> BatchResult<Vec<StoredToken>>;

    /// Records that these access tokens were used.
    fn note_token_use(&self, ids: &[TokenId]) -> BatchResult<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_have_names() {
        for scope in AccessScope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
        }
        for text in ["", "Read", "read ", "*"] {
            assert!(text.parse::<AccessScope>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn token_id_is_hex() {
        let id = TokenId::from_bytes([0, 1, 2, 3, 4, 5, 6, 0xff]);
        assert_eq!(id.to_string(), "00010203040506ff");
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "00010203040506f", "00010203040506FF", "+001020304050607"] {
            assert_eq!(text.parse::<TokenId>(), Err(TokenIdError), "{text}");
        }
    }
}
