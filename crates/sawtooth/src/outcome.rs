use grid_batch_core::{Outcome, SubmissionAnswer};
use grid_batch_http::{HttpError, HttpResponse, submission_answer};

use crate::api_error::{RestApiError, error_message};

/// The answer to a submission, from the result of its POST.
pub(crate) fn read_answer(result: Result<HttpResponse, HttpError>) -> SubmissionAnswer {
    let message = result.as_ref().ok().map(error_message);
    let answer = submission_answer(result, |response| {
        let code = RestApiError::from_response(response).map(|error| error.code);
        outcome(response.status, code)
    });
    let message = message.filter(|_| answer.outcome != Outcome::Accepted);
    SubmissionAnswer { message: message.or(answer.message), ..answer }
}

/// The README gives the reasons.
fn outcome(status: u16, code: Option<u16>) -> Outcome {
    match (status, code) {
        (200 | 202, _) => Outcome::Accepted,
        (429, _) | (503, Some(15)) => Outcome::Busy,
        (408, Some(19)) => Outcome::NotSent,
        (408, _) => Outcome::Ambiguous,
        (400, Some(30 | 34 | 35)) | (413, _) => Outcome::Rejected,
        (300..=499, _) => Outcome::Refused,
        _ => Outcome::Ambiguous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a row of the README is about responses with this status and this code.
    fn is_about(row: &[&str], status: u16, code: Option<u16>) -> bool {
        let (first, last) = row[0].split_once(" to ").unwrap_or((row[0], row[0]));
        let is_status = match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) => (first..=last).contains(&status),
            _ => row[0] == "any other",
        };
        is_status && (row[1] == "any" || row[1].parse().ok() == code)
    }

    #[test]
    fn readme_has_the_outcome_of_every_response() {
        let readme = include_str!("../README.md");
        let head = "| response | code | outcome | reason |\n|---|---|---|---|\n";
        let (_, rows) = readme.split_once(head).unwrap();
        let rows = rows.lines().take_while(|line| line.starts_with('|'));
        let mut rows: Vec<(Vec<&str>, bool)> =
            rows.map(|row| (row.split('|').map(str::trim).skip(1).collect(), false)).collect();
        for code in (0..100).map(Some).chain([None]) {
            for status in (0..700).chain([999, u16::MAX]) {
                let row = rows.iter_mut().find(|(row, _)| is_about(row, status, code));
                let (row, is_used) = row.unwrap();
                *is_used = true;
                assert_eq!(outcome(status, code).to_string(), row[2], "{status} with {code:?}");
            }
        }
        let text = || "x".to_owned();
        for (response, error) in [
            ("none: not sent", HttpError::NotSent(text())),
            ("none: invalid request", HttpError::InvalidRequest(text())),
            ("none, or incomplete", HttpError::NoResponse(text())),
            ("none, or incomplete", HttpError::TooLong { limit: 1 }),
        ] {
            let (row, is_used) = rows.iter_mut().find(|(row, _)| row[0] == response).unwrap();
            *is_used = true;
            assert_eq!(read_answer(Err(error)).outcome.to_string(), row[2], "{response}");
        }
        let unused: Vec<_> = rows.iter().filter(|(_, is_used)| !is_used).collect();
        assert!(unused.is_empty(), "{unused:?}");
    }

    #[test]
    fn status_without_a_code_has_a_cautious_outcome() {
        for status in 0..=u16::MAX {
            let outcome = outcome(status, None);
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
