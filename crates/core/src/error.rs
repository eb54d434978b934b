use std::error::Error;

use crate::ServiceId;

/// A failure that the caller can only report, such as a thread that cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct InternalError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl InternalError {
    /// An error without a source.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// An error that was caused by `source`; `message` says what was being done.
    pub fn from_source(
        message: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self { message: message.into(), source: Some(source.into()) }
    }
}

/// A result of storing, reading or polling batches.
pub type BatchResult<T> = Result<T, BatchError>;

/// Why batches could not be stored, read or polled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// An internal failure; trying again may help.
    #[error("{0}")]
    InternalError(String),
    /// The ledger or the store cannot be reached now; try again later.
    #[error("not available now: {0}")]
    Unavailable(String),
    /// Other transactions keep rows of these services locked. The changes of other services were made; try again for
    /// these services.
    #[error(
        "{} services are locked in the database by another transaction, first {}",
        .0.len(),
        .0.first().map_or("none", ServiceId::as_str)
    )]
    Locked(Vec<ServiceId>),
    /// The store has no space left: give it some, then try again.
    #[error("no space is left: {0}")]
    Full(String),
    /// The ledger sent a response that does not fit the request.
    #[error("the answer cannot be used: {0}")]
    InvalidAnswer(String),
}

impl BatchError {
    /// The same error with a message that begins with this place, such as a node.
    #[must_use]
    pub fn at(self, place: &str) -> Self {
        match self {
            Self::InternalError(text) => Self::InternalError(format!("{place}: {text}")),
            Self::Unavailable(text) => Self::Unavailable(format!("{place}: {text}")),
            Self::Full(text) => Self::Full(format!("{place}: {text}")),
            Self::InvalidAnswer(text) => Self::InvalidAnswer(format!("{place}: {text}")),
            Self::Locked(services) => Self::Locked(services),
        }
    }
}
