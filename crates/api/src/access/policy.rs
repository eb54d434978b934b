use std::{fmt, str::FromStr};

use grid_batch_core::Excerpt;
use thiserror::Error;

/// What requests must authenticate with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AccessMode {
    /// Nothing: everyone who reaches the server may do everything.
    #[default]
    Open,
    /// A request that reaches the ledger needs a Cylinder token of a key that the ledger accepts, or that is
    /// configured. Others need nothing.
    LedgerKeys,
    /// An access token, or a Cylinder token of a key that is configured.
    Tokens,
}

/// A text is not an [`AccessMode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it must be \"none\", \"ledger_keys\" or \"tokens\"")]
pub struct AccessModeError;

impl FromStr for AccessMode {
    type Err = AccessModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::Open),
            "ledger_keys" => Ok(Self::LedgerKeys),
            "tokens" => Ok(Self::Tokens),
            _ => Err(AccessModeError),
        }
    }
}

/// Who may read the health and the metrics without a token. `/health/live` is open to everyone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HealthAccess {
    /// No one: it needs a token with the scope `read`.
    Token,
    /// Clients on this machine.
    #[default]
    Local,
    /// Everyone who reaches the server.
    Everyone,
}

/// Why a text is not a [`HealthAccess`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{value} is unknown; it must be token, local or everyone")]
pub struct HealthAccessError {
    /// The beginning of the text.
    pub value: Excerpt,
}

impl HealthAccess {
    const ALL: [Self; 3] = [Self::Token, Self::Local, Self::Everyone];

    fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Local => "local",
            Self::Everyone => "everyone",
        }
    }
}

impl FromStr for HealthAccess {
    type Err = HealthAccessError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let access = Self::ALL.into_iter().find(|access| access.as_str() == text);
        access.ok_or_else(|| HealthAccessError { value: Excerpt::of(text) })
    }
}

impl fmt::Display for HealthAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
