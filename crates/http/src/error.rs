use grid_batch_core::BatchError;
use thiserror::Error;

/// Why a request has no complete response, or a websocket no further texts.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The client cannot be created.
    #[error("cannot create the HTTP client: {0}")]
    Client(String),
    /// The URL or a header is invalid; correct the configuration.
    #[error("invalid request: {0}")]
    InvalidRequest(String),
    /// The server certainly did not receive the request.
    #[error("not sent: {0}")]
    NotSent(String),
    /// The server may have received the request, and no complete response arrived.
    #[error("no complete response: {0}")]
    NoResponse(String),
    /// The server may have received the request, and no complete response arrived in time.
    #[error("no complete response in time: {0}")]
    TimedOut(String),
    /// The body of the response exceeds the limit.
    #[error("the response is longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The server answered the handshake of a websocket with another status than 101.
    #[error("the websocket handshake was refused with HTTP status {status}")]
    Refused {
        /// The HTTP status.
        status: u16,
    },
    /// The server sent something that this client does not accept on a websocket.
    #[error("invalid websocket data: {0}")]
    InvalidData(String),
}

impl HttpError {
    /// Whether the server did not answer: it cannot be reached, its connection broke, or it took too long.
    pub fn is_no_answer(&self) -> bool {
        matches!(self, Self::NotSent(_) | Self::NoResponse(_) | Self::TimedOut(_))
    }
}

impl From<HttpError> for BatchError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::TooLong { .. } | HttpError::InvalidData(_) => {
                Self::InvalidAnswer(error.to_string())
            }
            HttpError::Client(_) | HttpError::InvalidRequest(_) => {
                Self::InternalError(error.to_string())
            }
            _ => Self::Unavailable(error.to_string()),
        }
    }
}
