use std::error::Error;

/// Something failed that the caller can do nothing about but report: a thread that does not start,
/// a lock that is poisoned.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct InternalError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl InternalError {
    /// An error of our own.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// What we were doing when `source` came up.
    pub fn from_source(
        message: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self { message: message.into(), source: Some(source.into()) }
    }
}
