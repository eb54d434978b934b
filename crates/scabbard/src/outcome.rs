use std::ops::RangeInclusive;

use grid_batch_core::Outcome;
use grid_batch_http::{HttpError, HttpResponse};

use crate::words::message_of;

/// What POSTs come to: the first rule that fits counts.
static RULES: &[Rule] = &[
    rule(Sign::Status(200..=200), Outcome::Accepted, "as 202"),
    rule(Sign::Status(202..=202), Outcome::Accepted, "the node has queued it"),
    rule(Sign::Status(300..=399), Outcome::Refused, "the address is another one"),
    rule(Sign::Says(400, "Invalid body"), Outcome::Rejected, "the bytes are no list of batches"),
    rule(
        Sign::Says(400, "No valid batches"),
        Outcome::Rejected,
        "a signature, a hash or a list of transactions is wrong",
    ),
    rule(
        Sign::Status(400..=400),
        Outcome::Refused,
        "the node speaks another version, or something between complains of the request",
    ),
    rule(Sign::Status(401..=401), Outcome::Refused, "the key is not known, or may not write"),
    rule(
        Sign::Status(404..=404),
        Outcome::Refused,
        "the service is not on this node, or not started yet",
    ),
    rule(
        Sign::Status(408..=408),
        Outcome::Ambiguous,
        "something between gave up; the node may have the request",
    ),
    rule(Sign::Status(413..=413), Outcome::Rejected, "it is too long for what is between"),
    rule(Sign::Status(429..=429), Outcome::Busy, "the queue is full, and nothing was taken"),
    rule(Sign::Status(402..=499), Outcome::Refused, "the request is not one that can be made here"),
    rule(
        Sign::Status(503..=503),
        Outcome::Ambiguous,
        "the node never says so; something between may after handing the request on",
    ),
    rule(Sign::Status(500..=599), Outcome::Ambiguous, "the node may have queued it"),
    rule(Sign::NotSent, Outcome::NotSent, "nobody was there to read it"),
    rule(Sign::Unwritable, Outcome::Refused, "there is no such address, and nothing was sent"),
    OTHERWISE,
];

const OTHERWISE: Rule =
    rule(Sign::Anything, Outcome::Ambiguous, "no whole answer, or one that no node gives");

pub(crate) struct Rule {
    sign: Sign,
    pub(crate) outcome: Outcome,
    pub(crate) why: &'static str,
}

/// What an outcome is known by.
enum Sign {
    /// An HTTP status in this range.
    Status(RangeInclusive<u16>),
    /// This HTTP status, and a message that begins so.
    Says(u16, &'static str),
    /// It certainly did not reach anybody.
    NotSent,
    /// No request could be made.
    Unwritable,
    Anything,
}

const fn rule(sign: Sign, outcome: Outcome, why: &'static str) -> Rule {
    Rule { sign, outcome, why }
}

/// The rule that says what a POST with this answer comes to.
pub(crate) fn rule_of(answer: &Result<HttpResponse, HttpError>) -> &'static Rule {
    RULES.iter().find(|rule| rule.sign.fits(answer)).unwrap_or(&OTHERWISE)
}

impl Sign {
    fn fits(&self, answer: &Result<HttpResponse, HttpError>) -> bool {
        match (self, answer) {
            (Self::Status(range), Ok(answer)) => range.contains(&answer.status),
            (Self::Says(status, beginning), Ok(answer)) => {
                answer.status == *status
                    && message_of(answer).is_some_and(|message| message.starts_with(beginning))
            }
            (Self::NotSent, Err(HttpError::NotSent(_)))
            | (Self::Unwritable, Err(HttpError::InvalidRequest(_) | HttpError::Client(_)))
            | (Self::Anything, _) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    impl fmt::Display for Sign {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::Status(range) if range.start() == range.end() => {
                    write!(f, "{}", range.start())
                }
                Self::Status(range) => write!(f, "other {}..{}", range.start(), range.end()),
                Self::Says(status, beginning) => write!(f, "{status} \"{beginning}…\""),
                Self::NotSent => f.write_str("no connection"),
                Self::Unwritable => f.write_str("no request"),
                Self::Anything => f.write_str("anything else"),
            }
        }
    }

    #[test]
    fn the_readme_has_the_same_table() {
        let readme = include_str!("../README.md");
        let shown: Vec<&str> = readme
            .lines()
            .skip_while(|line| !line.starts_with("| the POST's answer |"))
            .skip(2)
            .take_while(|line| line.starts_with('|'))
            .collect();
        let written: Vec<String> = RULES
            .iter()
            .map(|Rule { sign, outcome, why }| format!("| {sign} | {outcome} | {why} |"))
            .collect();
        assert_eq!(shown, written);
    }

    #[test]
    fn every_status_and_error_has_its_outcome() {
        use Outcome::{Accepted, Ambiguous, Busy, NotSent, Refused, Rejected};
        let status = |status, body: &str| {
            rule_of(&Ok(HttpResponse { status, retry_after: None, body: Ok(body.into()) })).outcome
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
            assert_eq!(rule_of(&Err(error.clone())).outcome, expected, "{error}");
        }
    }

    #[test]
    fn a_status_counts_though_its_body_did_not_arrive() {
        for (status, expected) in
            [(202, Outcome::Accepted), (400, Outcome::Refused), (429, Outcome::Busy)]
        {
            let body = Err(HttpError::NoResponse("half of it".to_owned()));
            let answer = HttpResponse { status, retry_after: None, body };
            assert_eq!(rule_of(&Ok(answer)).outcome, expected);
        }
    }
}
