use std::{error::Error as StdError, io, iter};

use grid_batch_core::BatchError;
use grid_batch_support::ErrorChain;
use thiserror::Error;

use crate::tls;

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

/// What an error of reqwest says about the request. Its own text would show the URL, which may contain secrets.
impl HttpError {
    pub(crate) fn from_reqwest(error: &reqwest::Error) -> Self {
        let reason = Self::reason(error);
        if error.is_builder() {
            return Self::InvalidRequest(reason);
        }
        // hyper cancels a request only if the connection closed before it had begun to write it. Errors of a response
        // may say the same of something else, such as an upgrade.
        let is_canceled = || find::<hyper::Error>(error).is_some_and(hyper::Error::is_canceled);
        if error.is_request() && (error.is_connect() || is_canceled()) {
            return Self::NotSent(reason);
        }
        Self::NoResponse(reason)
    }

    /// Why it failed, from the first cause that tells more than that it did.
    pub(crate) fn reason(error: &reqwest::Error) -> String {
        if let Some(error) = tls_error(error) {
            return tls::failure(error);
        }
        if error.is_connect() && error.is_timeout() {
            return "connecting took too long".to_owned();
        }
        let tells = |error: &&(dyn StdError + 'static)| {
            !error.is::<reqwest::Error>() && !error.is::<hyper_util::client::legacy::Error>()
        };
        let reason = causes(error).find(tells);
        reason.map_or_else(|| "it cannot be sent".to_owned(), |it| ErrorChain(it).to_string())
    }
}

fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    iter::successors(Some(error), |error| (*error).source())
}

/// The first cause of this type.
pub(crate) fn find<E: StdError + 'static>(error: &reqwest::Error) -> Option<&E> {
    causes(error).find_map(|error| error.downcast_ref())
}

/// An error of TLS is inside of errors of the connection, which do not call it their source.
fn tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    causes(error).filter_map(|error| innermost(error.downcast_ref()?)?.downcast_ref()).next()
}

fn innermost(error: &io::Error) -> Option<&(dyn StdError + Send + Sync + 'static)> {
    let inner = error.get_ref()?;
    inner.downcast_ref().map_or(Some(inner), innermost)
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
