use grid_batch_core::ledger::{Outcome, SubmissionAnswer};
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

/// Determined by the status and by the code of the Sawtooth error in the body. The status decides even if the body does
/// not arrive.
fn outcome(status: u16, code: Option<u16>) -> Outcome {
    match (status, code) {
        // 200 means the same, through a proxy.
        (200 | 202, _) => Outcome::Accepted,
        // 31: the queue of the validator is full. 15: the validator is not ready, and accepted nothing.
        (429, _) | (503, Some(15)) => Outcome::Busy,
        // The REST API could not pass the batch to the validator.
        (408, Some(19)) => Outcome::NotSent,
        // A proxy timed out, and may have passed the batch on.
        (408, _) => Outcome::Ambiguous,
        // A signature, a hash or the structure is invalid, the list is empty, the body is not a list of batches, or it
        // is too long.
        (400, Some(30 | 34 | 35)) | (413, _) => Outcome::Rejected,
        // The URL, the credentials or a proxy is wrong, rather than the batch. Redirects are not followed.
        (300..=499, _) => Outcome::Refused,
        // 503 with 17 or 18, 500 with 10 or 20, a proxy's 502: the batch may have been accepted.
        _ => Outcome::Ambiguous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_response_and_error_has_an_outcome() {
        use Outcome::{Accepted, Ambiguous, Busy, NotSent, Refused, Rejected};
        // Statuses, code and outcome. The first matching row applies.
        let rows = [
            (202..=202, None, Accepted),
            (200..=200, None, Accepted),
            (429..=429, None, Busy),
            (503..=503, Some(15), Busy),
            (408..=408, Some(19), NotSent),
            (408..=408, None, Ambiguous),
            (400..=400, Some(30), Rejected),
            (400..=400, Some(34), Rejected),
            (400..=400, Some(35), Rejected),
            (413..=413, None, Rejected),
            (400..=499, None, Refused),
            (300..=399, None, Refused),
            (0..=u16::MAX, None, Ambiguous),
        ];
        for code in (0..100).map(Some).chain([None]) {
            for status in (0..700).chain([999, u16::MAX]) {
                let row = rows.iter().find(|(statuses, of, _)| {
                    statuses.contains(&status) && (of.is_none() || *of == code)
                });
                assert_eq!(outcome(status, code), row.unwrap().2, "{status} with {code:?}");
            }
        }
        let text = || "x".to_owned();
        for (expected, error) in [
            (NotSent, HttpError::NotSent(text())),
            (Refused, HttpError::InvalidRequest(text())),
            (Ambiguous, HttpError::NoResponse(text())),
            (Ambiguous, HttpError::TooLong { limit: 1 }),
        ] {
            assert_eq!(read_answer(Err(error.clone())).outcome, expected, "{error}");
        }
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
