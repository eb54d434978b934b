use std::{fmt, time::Duration};

use grid_batch_http::HttpError;
use serde_json::Value;
use thiserror::Error;

/// The reason why a request had no answer, or an error as its answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL of the server cannot be used.
    #[error("the URL {url} cannot be used: {reason}")]
    Url {
        /// The URL, without a password.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server does not answer. It may have executed the request.
    #[error("the server {url} does not answer")]
    Unreachable {
        /// The URL of the server, without a password.
        url: String,
        /// The cause.
        #[source]
        source: HttpError,
    },
    /// The server cannot do it now: try again later.
    #[error("the server cannot do it now: {problem}")]
    Busy {
        /// The error that the server reports.
        problem: Problem,
        /// The time after which to try again, if the server reports it.
        retry_after: Option<Duration>,
    },
    /// The server refuses the request.
    #[error("{problem}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The error that the server reports.
        problem: Problem,
    },
    /// The answer is not from a grid-batch server.
    #[error("the answer of {url} is not from a grid-batch server: {reason}")]
    NotUnderstood {
        /// The URL of the server, without a password.
        url: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The interface in this process has failed.
    #[error("{0}")]
    InProcess(String),
    /// The system cannot run the client.
    #[error("the client cannot be started")]
    System(#[source] std::io::Error),
}

/// An error as a server reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The code of the error in the documentation, if there is one.
    pub code: Option<u64>,
    /// A sentence for people.
    pub text: String,
}

impl Problem {
    /// Reads problem details, or an error in the form of a ledger. `None` if it is neither.
    pub(crate) fn read(body: &Value) -> Option<Self> {
        let fields = body.get("error").unwrap_or(body);
        let text =
            ["detail", "message", "title"].into_iter().find_map(|it| fields.get(it)?.as_str())?;
        Some(Self { code: fields.get("code").and_then(Value::as_u64), text: text.to_owned() })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{} (code {code})", self.text),
            None => f.write_str(&self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn problem_is_read_in_each_dialect() {
        let own = json!({"title": "Wrong State", "detail": "it has ended", "code": 1070});
        assert_eq!(Problem::read(&own).unwrap().to_string(), "it has ended (code 1070)");
        let sawtooth = json!({"error": {"code": 30, "title": "Invalid", "message": "not signed"}});
        assert_eq!(Problem::read(&sawtooth).unwrap().to_string(), "not signed (code 30)");
        assert_eq!(Problem::read(&json!({"message": "gone"})).unwrap().to_string(), "gone");
        assert_eq!(Problem::read(&json!([])), None);
    }
}
