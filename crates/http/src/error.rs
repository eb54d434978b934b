use grid_batch_core::BatchError;
use thiserror::Error;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The client could not be made.
    #[error("no HTTP client: {0}")]
    Client(String),
    /// The request cannot be written: a matter of configuration.
    #[error("no request can be made of this address or these headers: {0}")]
    Request(String),
    /// It certainly did not reach anybody.
    #[error("not sent: {0}")]
    NotSent(String),
    /// It may have been received, and no whole answer came back.
    #[error("no whole answer: {0}")]
    NoAnswer(String),
    /// The answer is longer than is read.
    #[error("the answer is longer than {limit} bytes")]
    TooLong {
        /// As much as is read.
        limit: usize,
    },
    /// A socket was not opened, but answered.
    #[error("the socket was refused with HTTP status {status}")]
    Refused {
        /// The HTTP status.
        status: u16,
    },
    /// The other side of a socket said what it must not.
    #[error("the socket cannot be used: {0}")]
    Socket(String),
}

impl HttpError {
    /// What a failed request comes to. The address stays out of it: it may hold a password.
    pub(crate) fn of_request(error: reqwest::Error) -> Self {
        let error = error.without_url();
        if error.is_builder() {
            Self::Request(with_sources(&error))
        } else if error.is_connect() {
            Self::NotSent(with_sources(&error))
        } else {
            Self::NoAnswer(with_sources(&error))
        }
    }
}

impl From<HttpError> for BatchError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::TooLong { .. } | HttpError::Socket(_) => {
                Self::InvalidAnswer(error.to_string())
            }
            HttpError::Client(_) | HttpError::Request(_) => Self::InternalError(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

/// The error with what caused it, down to the one that says what happened.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}
