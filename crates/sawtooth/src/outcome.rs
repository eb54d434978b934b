use grid_batch_core::{Outcome, SubmissionAnswer};
use grid_batch_http::{HttpError, HttpResponse};

use crate::api_error::{ApiError, error_message};

/// The result of the POST of a batch, or a pattern of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PostResult {
    /// A response whose status is between the first and the second, with this error code. As a
    /// pattern, no code means any code.
    Response(u16, u16, Option<u16>),
    NotSent,
    InvalidRequest,
    NoResponse,
}

/// The first matching row applies. The README gives the reasons.
const OUTCOMES: &[(PostResult, Outcome)] = &[
    (status(202), Outcome::Accepted),
    (status(200), Outcome::Accepted),
    (status(429), Outcome::Busy),
    (code(503, 15), Outcome::Busy),
    (code(408, 19), Outcome::NotSent),
    (status(408), Outcome::Ambiguous),
    (code(400, 30), Outcome::Rejected),
    (code(400, 34), Outcome::Rejected),
    (code(400, 35), Outcome::Rejected),
    (status(413), Outcome::Rejected),
    (statuses(400, 499), Outcome::Refused),
    (statuses(300, 399), Outcome::Refused),
    (statuses(0, u16::MAX), Outcome::Ambiguous),
    (PostResult::NotSent, Outcome::NotSent),
    (PostResult::InvalidRequest, Outcome::Refused),
    (PostResult::NoResponse, Outcome::Ambiguous),
];

const fn status(status: u16) -> PostResult {
    statuses(status, status)
}

const fn statuses(first: u16, last: u16) -> PostResult {
    PostResult::Response(first, last, None)
}

const fn code(status: u16, code: u16) -> PostResult {
    PostResult::Response(status, status, Some(code))
}

impl PostResult {
    fn new(result: &Result<HttpResponse, HttpError>) -> Self {
        match result {
            Ok(response) => {
                let code = ApiError::from_response(response).map(|error| error.code);
                Self::Response(response.status, response.status, code)
            }
            Err(HttpError::NotSent(_)) => Self::NotSent,
            Err(HttpError::Client(_) | HttpError::InvalidRequest(_)) => Self::InvalidRequest,
            Err(_) => Self::NoResponse,
        }
    }

    fn matches(self, pattern: Self) -> bool {
        match (self, pattern) {
            (Self::Response(status, _, code), Self::Response(first, last, expected)) => {
                (first..=last).contains(&status) && (expected.is_none() || expected == code)
            }
            (result, pattern) => result == pattern,
        }
    }

    fn outcome(self) -> Outcome {
        let row = OUTCOMES.iter().find(|(pattern, _)| self.matches(*pattern));
        row.map_or(Outcome::Ambiguous, |(_, outcome)| *outcome)
    }
}

/// The answer to a submission, from the result of its POST.
pub(crate) fn submission_answer(result: Result<HttpResponse, HttpError>) -> SubmissionAnswer {
    let outcome = PostResult::new(&result).outcome();
    match result {
        Ok(response) => SubmissionAnswer {
            outcome,
            status: Some(response.status),
            message: (outcome != Outcome::Accepted).then(|| error_message(&response)),
            retry_after: response.retry_after,
        },
        Err(error) => SubmissionAnswer::without_response(outcome, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The row of the README, without the reason.
    fn readme_row((result, outcome): &(PostResult, Outcome)) -> String {
        let any = || "any".to_owned();
        let (response, code) = match *result {
            PostResult::Response(0, u16::MAX, None) => ("any other".to_owned(), any()),
            PostResult::Response(first, last, code) if first == last => {
                (first.to_string(), code.map_or_else(any, |code| code.to_string()))
            }
            PostResult::Response(first, last, _) => (format!("{first} to {last}"), any()),
            PostResult::NotSent => ("none: not sent".to_owned(), "-".to_owned()),
            PostResult::InvalidRequest => ("none: invalid request".to_owned(), "-".to_owned()),
            PostResult::NoResponse => ("none, or incomplete".to_owned(), "-".to_owned()),
        };
        format!("| {response} | {code} | {outcome} |")
    }

    #[test]
    fn readme_has_the_same_table() {
        let readme = include_str!("../README.md");
        let head = "| response | code | outcome | reason |\n|---|---|---|---|\n";
        let (_, rows) = readme.split_once(head).unwrap();
        let rows = rows.lines().take_while(|line| line.starts_with('|'));
        let without_reason = rows.map(|row| row.rsplitn(3, '|').nth(2).unwrap().to_owned() + "|");
        let expected: Vec<String> = OUTCOMES.iter().map(readme_row).collect();
        assert_eq!(without_reason.collect::<Vec<_>>(), expected, "\n{}", expected.join("\n"));
    }

    #[test]
    fn every_row_of_the_table_is_used() {
        let codes = (0..100).map(Some).chain([None]);
        let responses = codes.flat_map(|code| {
            [0, 100, 200, 202, 204, 300, 400, 404, 408, 413, 429, 499, 500, 503, 599, 999]
                .map(|status| PostResult::Response(status, status, code))
        });
        let without_response =
            [PostResult::NotSent, PostResult::InvalidRequest, PostResult::NoResponse];
        let row = |result: PostResult| {
            OUTCOMES.iter().position(|(pattern, _)| result.matches(*pattern)).unwrap()
        };
        let used: BTreeSet<usize> = responses.chain(without_response).map(row).collect();
        assert_eq!(used, (0..OUTCOMES.len()).collect());
    }

    #[test]
    fn status_without_a_code_has_a_cautious_outcome() {
        for status in 0..=u16::MAX {
            let outcome = PostResult::Response(status, status, None).outcome();
            let (first, last) = match outcome {
                Outcome::Accepted => (200, 202),
                Outcome::Rejected => (413, 413),
                Outcome::Busy => (429, 429),
                Outcome::Refused => (300, 499),
                Outcome::NotSent
                | Outcome::Parked
                | Outcome::PoolParked
                | Outcome::RefusedBatch
                | Outcome::NotProvedNew
                | Outcome::Committed => {
                    panic!("{status} does not say {outcome}")
                }
                Outcome::Ambiguous => continue,
            };
            assert!((first..=last).contains(&status), "{status} is {outcome}");
        }
    }
}
