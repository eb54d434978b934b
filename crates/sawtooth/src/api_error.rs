use std::fmt;

use grid_batch_core::BatchError;
use grid_batch_http::{Answer, one_line};
use serde::Deserialize;

/// An error that the REST API has a code for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    #[serde(default)]
    title: String,
    #[serde(default)]
    message: String,
}

impl ApiError {
    /// `GET /batches/{id}`: there is no such batch in a block.
    pub(crate) const BATCH_NOT_FOUND: u16 = 71;

    /// The error in an answer, where the REST API wrote it: a proxy before it writes others.
    pub(crate) fn of(answer: &Answer) -> Option<Self> {
        #[derive(Deserialize)]
        struct Envelope {
            error: ApiError,
        }
        let body = answer.body.as_ref().ok()?;
        serde_json::from_slice::<Envelope>(body).ok().map(|envelope| envelope.error)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, title, message } = self;
        write!(f, "{} (code {code}): {}", one_line(title), one_line(message))
    }
}

/// What an answer without a result says to people.
pub(crate) fn message(answer: &Answer) -> String {
    match ApiError::of(answer) {
        Some(error) => error.to_string(),
        None if answer.text().is_empty() => "an answer without a text".to_owned(),
        None => answer.text(),
    }
}

/// The body of an answer that is a result.
pub(crate) fn result(answer: Answer) -> Result<Vec<u8>, BatchError> {
    let status = answer.status;
    if status == 200 {
        return Ok(answer.body?);
    }
    let text = format!("HTTP status {status}: {}", message(&answer));
    Err(match status {
        408 | 429 | 500.. => BatchError::Unavailable(text),
        _ => BatchError::InvalidAnswer(text),
    })
}
