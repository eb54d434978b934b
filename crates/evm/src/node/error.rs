use std::time::Duration;

use alloy_primitives::Bytes;
use grid_batch_http::HttpError;
use thiserror::Error;

/// Why a node did not answer a question.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum NodeError {
    /// There is no such address, and there never will be.
    #[error("{0}")]
    Address(String),
    /// The question certainly did not reach it.
    #[error("the node was not asked: {0}")]
    NotSent(String),
    /// It may have been asked, and no whole answer came back.
    #[error("the node gave no whole answer: {0}")]
    NoAnswer(String),
    /// It has no room now, or was asked too often.
    #[error("the node is busy (HTTP status {status}): {text}")]
    Busy { status: u16, retry_after: Option<Duration>, text: String },
    /// What stands before it answered in its place.
    #[error("the node answered with HTTP status {status}: {text}")]
    Status { status: u16, text: String },
    /// It refused.
    #[error("the node says: {message} (code {code})")]
    Rpc { code: i64, message: String, data: Option<Bytes> },
    /// Its answer is none to this question.
    #[error("the node's answer cannot be used: {0}")]
    Answer(String),
}

impl NodeError {
    const NO_SUCH_METHOD: i64 = -32_601;

    /// The node does not know the question.
    pub(crate) fn is_no_such_method(&self) -> bool {
        matches!(self, Self::Rpc { code: Self::NO_SUCH_METHOD, .. })
    }
}

impl From<HttpError> for NodeError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::NotSent(text) => Self::NotSent(text),
            HttpError::InvalidRequest(_) => Self::Address(error.to_string()),
            HttpError::Client(_) => Self::NotSent(error.to_string()),
            HttpError::NoResponse(text) => Self::NoAnswer(text),
            error => Self::Answer(error.to_string()),
        }
    }
}
