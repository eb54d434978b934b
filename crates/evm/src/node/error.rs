use std::time::Duration;

use alloy_primitives::Bytes;
use grid_batch_core::BatchError;
use grid_batch_http::HttpError;
use thiserror::Error;

/// Why a node did not answer a request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum NodeError {
    /// The URL cannot be used.
    #[error("{0}")]
    InvalidUrl(String),
    /// The request certainly did not reach the node.
    #[error("the request was not sent to the node: {0}")]
    NotSent(String),
    /// The node may have received the request, but there was no complete response.
    #[error("no complete response from the node: {0}")]
    NoResponse(String),
    /// The node is overloaded, or received too many requests.
    #[error("the node is busy (HTTP status {status}){}", detail(text))]
    Busy { status: u16, retry_after: Option<Duration>, text: String },
    /// An HTTP status other than success, for example from a reverse proxy.
    #[error("the node answered with HTTP status {status}{}", detail(text))]
    Status { status: u16, text: String },
    /// The node answered with a JSON-RPC error.
    #[error("the node returned an error: {message} (code {code})")]
    Rpc { code: i64, message: String, data: Option<Bytes> },
    /// The response does not answer the request.
    #[error("invalid response from the node: {0}")]
    InvalidResponse(String),
}

/// The text of a response, after the message; nothing if the response is empty.
fn detail(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

impl NodeError {
    /// The codes for a method that is not found, not supported, or not enabled.
    const MISSING_METHOD: [i64; 3] = [-32_601, -32_004, -32_604];

    /// Whether the node has removed the requested data.
    pub(crate) fn is_pruned(&self) -> bool {
        const PRUNED_HISTORY: i64 = 4_444;
        let Self::Rpc { code, message, .. } = self else { return false };
        *code == PRUNED_HISTORY || message.to_lowercase().contains("pruned")
    }

    /// Whether the node may accept the request for fewer blocks. The messages of nodes differ too much to be listed;
    /// words are only checked where they distinguish a range of blocks from too many requests.
    pub(crate) fn may_accept_fewer_blocks(&self) -> bool {
        match self {
            Self::Rpc { .. } => !self.is_method_not_found(),
            Self::Busy { text, .. } => {
                let text = text.to_lowercase();
                text.contains("range") || text.contains("results")
            }
            _ => false,
        }
    }

    /// Whether the method takes fewer parameters at this node.
    pub(crate) fn is_too_many_arguments(&self) -> bool {
        matches!(self, Self::Rpc { message, .. } if message.contains("too many arguments"))
    }

    /// Whether the node does not have the requested method. Nodes that do not use the JSON-RPC code for this say so in
    /// their message.
    pub(crate) fn is_method_not_found(&self) -> bool {
        let Self::Rpc { code, message, .. } = self else { return false };
        Self::MISSING_METHOD.contains(code)
            || says_that_a_method_is_missing(&message.to_lowercase())
    }
}

fn says_that_a_method_is_missing(message: &str) -> bool {
    const MISSING: [&str; 6] = [
        "not found",
        "not supported",
        "does not exist",
        "not available",
        "not implemented",
        "unsupported",
    ];
    message.contains("method") && MISSING.iter().any(|words| message.contains(words))
}

impl From<HttpError> for NodeError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::NotSent(text) => Self::NotSent(text),
            HttpError::InvalidRequest(_) => Self::InvalidUrl(error.to_string()),
            HttpError::Client(_) => Self::NotSent(error.to_string()),
            HttpError::NoResponse(text) | HttpError::TimedOut(text) => Self::NoResponse(text),
            error => Self::InvalidResponse(error.to_string()),
        }
    }
}

impl From<NodeError> for BatchError {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::InvalidResponse(_) | NodeError::Status { status: 400..500, .. } => {
                Self::InvalidAnswer(error.to_string())
            }
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_method_is_recognized_by_code_or_words() {
        for (code, message, expected) in [
            (-32_601, "", true),
            (-32_004, "Method eth_feeHistory is not supported", true),
            (-32_000, "Method eth_feeHistory not supported.", true),
            (-32_000, "the method eth_feeHistory does not exist/is not available", true),
            (-32_000, "unsupported method: eth_feeHistory", true),
            (-32_604, "Method not enabled", true),
            (-32_000, "method handler crashed", false),
            (-32_000, "header not found", false),
            (3, "execution reverted", false),
        ] {
            let error = NodeError::Rpc { code, message: message.to_owned(), data: None };
            assert_eq!(error.is_method_not_found(), expected, "{error}");
        }
        assert!(!NodeError::NoResponse("method not found".to_owned()).is_method_not_found());
    }
}
