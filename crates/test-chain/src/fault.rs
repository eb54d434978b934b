use std::time::Duration;

/// Something that a node does wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// This HTTP status, such as 429 or 503; the node hears nothing.
    Status {
        /// The status.
        code: u16,
        /// When to come again, in whole seconds.
        retry_after: Option<Duration>,
    },
    /// The node refuses in these words; it hears nothing.
    Answer {
        /// The number of its error.
        code: i64,
        /// Its words.
        message: String,
    },
    /// The node knows of nothing (`"result": null`); it hears nothing.
    Null,
    /// The connection breaks before the node has heard.
    NotForwarded,
    /// The node hears, and the connection breaks before its answer.
    LostAnswer,
    /// The node hears at once, and its answer comes this much later.
    Slow(Duration),
    /// The node says again what it said when it was first asked the very same since the fault was
    /// set.
    Stale,
}

impl Fault {
    /// A refusal as geth has it, with -32000 as its code.
    pub fn answer(message: impl Into<String>) -> Self {
        Self::Answer { code: -32000, message: message.into() }
    }

    /// An HTTP status that says nothing about when to come again.
    pub fn status(code: u16) -> Self {
        Self::Status { code, retry_after: None }
    }
}
