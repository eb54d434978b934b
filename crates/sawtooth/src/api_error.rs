use std::fmt;

use grid_batch_http::HttpResponse;
use grid_batch_support::one_line;
use serde::Deserialize;

/// An error with a code of the REST API.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct RestApiError {
    pub(crate) code: u16,
    #[serde(default)]
    title: String,
    #[serde(default)]
    message: String,
}

impl RestApiError {
    /// The code of a request that the validator did not answer in time.
    pub(crate) const TIMED_OUT: u16 = 17;
    /// The code of a request that was in flight when the connection to the validator broke.
    pub(crate) const DISCONNECTED: u16 = 18;
    /// The code of `GET /batches/{id}` for a batch that is in no block.
    pub(crate) const BATCH_NOT_FOUND: u16 = 71;

    /// The code of `GET /transactions/{id}` for a transaction that is in no block.
    pub(crate) const TRANSACTION_NOT_FOUND: u16 = 72;

    /// The error in a response of the REST API. Successful responses and responses of proxies have none.
    pub(crate) fn from_response(response: &HttpResponse) -> Option<Self> {
        #[derive(Deserialize)]
        struct Envelope {
            error: RestApiError,
        }
        if (200..300).contains(&response.status) {
            return None;
        }
        let body = response.body.as_ref().ok()?;
        serde_json::from_slice::<Envelope>(body).ok().map(|envelope| envelope.error)
    }
}

impl fmt::Display for RestApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, title, message } = self;
        write!(f, "{} (code {code}): {}", one_line(title), one_line(message))
    }
}

/// The message of a response that reports an error.
pub(crate) fn error_message(response: &HttpResponse) -> String {
    match RestApiError::from_response(response) {
        Some(error) => error.to_string(),
        None if response.text().is_empty() => "empty response".to_owned(),
        None => response.text(),
    }
}
