use std::ops::RangeInclusive;

use grid_batch_core::Outcome;
use grid_batch_http::{HttpError, HttpResponse};

use crate::message::error_message;

/// The outcomes of a POST; the first matching rule applies.
static RULES: &[OutcomeRule] = &[
    rule(PostPattern::Status(200..=200), Outcome::Accepted, "as 202"),
    rule(PostPattern::Status(202..=202), Outcome::Accepted, "the node has queued the batch"),
    rule(PostPattern::Status(300..=399), Outcome::Refused, "the URL is wrong"),
    rule(
        PostPattern::Message(400, "Invalid body"),
        Outcome::Rejected,
        "the bytes are not a list of batches",
    ),
    rule(
        PostPattern::Message(400, "No valid batches"),
        Outcome::Rejected,
        "a signature, a hash or a list of transactions is invalid",
    ),
    rule(
        PostPattern::Status(400..=400),
        Outcome::Refused,
        "the node has another protocol version, or a proxy refuses the request",
    ),
    rule(
        PostPattern::Status(401..=401),
        Outcome::Refused,
        "the key is unknown, or may not submit batches",
    ),
    rule(
        PostPattern::Status(404..=404),
        Outcome::Refused,
        "the service is not on this node, or not started yet",
    ),
    rule(
        PostPattern::Status(408..=408),
        Outcome::Ambiguous,
        "a proxy timed out; the node may have the request",
    ),
    rule(PostPattern::Status(413..=413), Outcome::Rejected, "the batch is too long for a proxy"),
    rule(
        PostPattern::Status(429..=429),
        Outcome::Busy,
        "the queue is full, and the node accepted nothing",
    ),
    rule(PostPattern::Status(402..=499), Outcome::Refused, "the request is not supported"),
    rule(
        PostPattern::Status(503..=503),
        Outcome::Ambiguous,
        "not sent by nodes; a proxy may send it after it passed the request on",
    ),
    rule(PostPattern::Status(500..=599), Outcome::Ambiguous, "the node may have queued the batch"),
    rule(PostPattern::NotSent, Outcome::NotSent, "the node did not receive the request"),
    rule(PostPattern::InvalidRequest, Outcome::Refused, "the URL is invalid; nothing was sent"),
    OTHERWISE,
];

const OTHERWISE: OutcomeRule =
    rule(PostPattern::Any, Outcome::Ambiguous, "the response is incomplete, or not one of a node");

pub(crate) struct OutcomeRule {
    pattern: PostPattern,
    pub(crate) outcome: Outcome,
    pub(crate) reason: &'static str,
}

/// A pattern of the results of a POST.
enum PostPattern {
    /// A response with an HTTP status in this range.
    Status(RangeInclusive<u16>),
    /// A response with this HTTP status and an error message that starts with this text.
    Message(u16, &'static str),
    /// The request certainly was not received.
    NotSent,
    /// No request could be made.
    InvalidRequest,
    Any,
}

const fn rule(pattern: PostPattern, outcome: Outcome, reason: &'static str) -> OutcomeRule {
    OutcomeRule { pattern, outcome, reason }
}

/// The rule for the result of a POST.
pub(crate) fn matching_rule(result: &Result<HttpResponse, HttpError>) -> &'static OutcomeRule {
    RULES.iter().find(|rule| rule.pattern.matches(result)).unwrap_or(&OTHERWISE)
}

impl PostPattern {
    fn matches(&self, result: &Result<HttpResponse, HttpError>) -> bool {
        match (self, result) {
            (Self::Status(range), Ok(response)) => range.contains(&response.status),
            (Self::Message(status, prefix), Ok(response)) => {
                response.status == *status
                    && error_message(response).is_some_and(|message| message.starts_with(prefix))
            }
            (Self::NotSent, Err(HttpError::NotSent(_)))
            | (Self::InvalidRequest, Err(HttpError::InvalidRequest(_) | HttpError::Client(_)))
            | (Self::Any, _) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    impl fmt::Display for PostPattern {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::Status(range) if range.start() == range.end() => {
                    write!(f, "{}", range.start())
                }
                Self::Status(range) => write!(f, "other {}..{}", range.start(), range.end()),
                Self::Message(status, prefix) => write!(f, "{status} \"{prefix}…\""),
                Self::NotSent => f.write_str("not sent"),
                Self::InvalidRequest => f.write_str("invalid request"),
                Self::Any => f.write_str("anything else"),
            }
        }
    }

    #[test]
    fn readme_has_the_same_table() {
        let readme = include_str!("../README.md");
        let rows: Vec<&str> = readme
            .lines()
            .skip_while(|line| !line.starts_with("| result of the POST |"))
            .skip(2)
            .take_while(|line| line.starts_with('|'))
            .collect();
        let expected: Vec<String> = RULES
            .iter()
            .map(|OutcomeRule { pattern, outcome, reason }| {
                format!("| {pattern} | {outcome} | {reason} |")
            })
            .collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn every_status_and_error_has_an_outcome() {
        use Outcome::{Accepted, Ambiguous, Busy, NotSent, Refused, Rejected};
        let status = |status, body: &str| {
            matching_rule(&Ok(HttpResponse { status, retry_after: None, body: Ok(body.into()) }))
                .outcome
        };
        for (expected, statuses) in [
            (Accepted, &[200, 202][..]),
            (Busy, &[429]),
            (Rejected, &[413]),
            (Refused, &[300, 301, 302, 304, 307, 308, 399]),
            (Refused, &[400, 401, 402, 403, 404, 405, 406, 407, 409, 411, 414, 415, 421, 431, 499]),
            (Ambiguous, &[408, 500, 501, 502, 503, 504, 599]),
            (Ambiguous, &[100, 101, 199, 201, 203, 204, 206, 299, 600, 999]),
        ] {
            for code in statuses {
                assert_eq!(status(*code, ""), expected, "{code}");
            }
        }
        let message = |text: &str| status(400, &format!(r#"{{"code":"400","message":"{text}"}}"#));
        assert_eq!(message("Invalid body: not a valid list of batches"), Rejected);
        assert_eq!(message("No valid batches provided"), Rejected);
        assert_eq!(
            message("Client requires a newer protocol than can be provided: 2 > 1"),
            Refused
        );
        assert_eq!(status(400, "No valid batches provided"), Refused);
        assert_eq!(status(500, r#"{"message":"No valid batches provided"}"#), Ambiguous);

        let text = || "text".to_owned();
        for (expected, error) in [
            (NotSent, HttpError::NotSent(text())),
            (Refused, HttpError::InvalidRequest(text())),
            (Refused, HttpError::Client(text())),
            (Ambiguous, HttpError::NoResponse(text())),
            (Ambiguous, HttpError::TooLong { limit: 1 }),
            (Ambiguous, HttpError::InvalidData(text())),
            (Ambiguous, HttpError::Refused { status: 401 }),
        ] {
            assert_eq!(matching_rule(&Err(error.clone())).outcome, expected, "{error}");
        }
    }

    #[test]
    fn status_decides_even_if_the_body_breaks() {
        for (status, expected) in
            [(202, Outcome::Accepted), (400, Outcome::Refused), (429, Outcome::Busy)]
        {
            let body = Err(HttpError::NoResponse("connection reset".to_owned()));
            let response = HttpResponse { status, retry_after: None, body };
            assert_eq!(matching_rule(&Ok(response)).outcome, expected);
        }
    }
}
