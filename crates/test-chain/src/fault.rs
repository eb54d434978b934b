use std::time::Duration;

use serde_json::Value;

/// A fault of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Responds with this HTTP status, such as 429 or 503. The node does not get the call.
    Status {
        /// The status.
        code: u16,
        /// The value of `retry-after`, in whole seconds.
        retry_after: Option<Duration>,
    },
    /// Responds with this JSON-RPC error. The node does not get the call.
    RpcError {
        /// The error's code.
        code: i64,
        /// The error's message.
        message: String,
    },
    /// Responds with `"result": null`. The node does not get the call.
    Null,
    /// Responds with this result. The node does not get the call.
    Result(Value),
    /// Closes the connection. The node does not get the call.
    NotForwarded,
    /// Closes the connection after the node got the call, without its response.
    LostAnswer,
    /// Delays the response. The node gets the call at once.
    Slow(Duration),
    /// Repeats the response to the first equal call since the fault was set.
    Stale,
}

impl Fault {
    /// An error with geth's code -32000.
    pub fn rpc_error(message: impl Into<String>) -> Self {
        Self::RpcError { code: -32000, message: message.into() }
    }

    /// An HTTP status without `retry-after`.
    pub fn status(code: u16) -> Self {
        Self::Status { code, retry_after: None }
    }
}
