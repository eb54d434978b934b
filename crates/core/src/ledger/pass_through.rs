use std::fmt;

use futures_core::stream::BoxStream;
use thiserror::Error;

/// A request of a client that a node of the ledger answers.
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardedRequest {
    /// The path, as the client wrote it.
    pub path: String,
    /// The query, as the client wrote it.
    pub query: Option<String>,
    /// The headers of the client that concern the node, with lower-case names.
    pub headers: Vec<(&'static str, String)>,
    /// The body of a POST request; `None` for a GET request.
    pub body: Option<Vec<u8>>,
}

impl ForwardedRequest {
    /// A GET request without headers.
    pub fn get(path: impl Into<String>, query: Option<&str>) -> Self {
        let query = query.map(str::to_owned);
        Self { path: path.into(), query, headers: Vec::new(), body: None }
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(other, _)| *other == name);
        header.map(|(_, value)| value.as_str())
    }

    /// Path and query.
    pub fn target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }
}

/// Headers may be secret.
impl fmt::Debug for ForwardedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardedRequest").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The parts of a body, as they arrive.
pub type BodyParts = BoxStream<'static, Result<Vec<u8>, PassThroughError>>;

/// The answer of a node.
pub struct ForwardedResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers that concern the client, with lower-case names.
    pub headers: Vec<(&'static str, String)>,
    /// The body. An error after its first part ends it early.
    pub body: BodyParts,
}

impl fmt::Debug for ForwardedResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardedResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// A message of a websocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketMessage {
    /// A text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
    /// The last message: a code and a reason, if the sender gives them.
    Close(Option<(u16, String)>),
}

/// The messages of one side of a websocket. The websocket ends when the stream ends.
pub type SocketMessages = BoxStream<'static, SocketMessage>;

/// A node's answer to a request to open a websocket.
pub enum ForwardedSocket {
    /// It is open; these are the messages of the node.
    Open(SocketMessages),
    /// The node refuses it with this HTTP status.
    Refused(u16),
}

/// Why no node has answered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PassThroughError {
    /// No node can be asked now.
    #[error("no node of the ledger can be asked now")]
    NoNode,
    /// The nodes cannot be reached, or their answer is not complete.
    #[error("no node of the ledger answers: {0}")]
    Unavailable(String),
    /// A node did not answer in time.
    #[error("the node of the ledger does not answer in time: {0}")]
    TimedOut(String),
}
