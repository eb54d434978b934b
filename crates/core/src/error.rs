use std::error::Error;

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
