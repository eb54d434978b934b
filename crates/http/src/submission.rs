use grid_batch_core::ledger::{Outcome, SubmissionAnswer};

use crate::{HttpError, HttpResponse};

/// The result of sending a batch by a POST, where `outcome` reads the response. Without a response, it is known only
/// whether the batch may have arrived.
///
/// ```
/// use grid_batch_core::ledger::Outcome;
/// use grid_batch_http::{HttpError, submission_answer};
///
/// let not_sent = Err(HttpError::NotSent("connection refused".to_owned()));
/// let answer = submission_answer(not_sent, |response| match response.status {
///     202 => Outcome::Accepted,
///     _ => Outcome::Ambiguous,
/// });
/// assert_eq!(answer.outcome, Outcome::NotSent);
/// ```
pub fn submission_answer(
    result: Result<HttpResponse, HttpError>,
    outcome: impl FnOnce(&HttpResponse) -> Outcome,
) -> SubmissionAnswer {
    match result {
        Ok(response) => {
            let outcome = outcome(&response);
            SubmissionAnswer {
                outcome,
                status: Some(response.status),
                message: (outcome != Outcome::Accepted).then(|| response.text()),
                retry_after: response.retry_after,
            }
        }
        Err(error) => SubmissionAnswer {
            outcome: match error {
                HttpError::NotSent(_) => Outcome::NotSent,
                HttpError::Client(_) | HttpError::InvalidRequest(_) => Outcome::Refused,
                _ => Outcome::Ambiguous,
            },
            status: None,
            message: Some(error.to_string()),
            retry_after: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn response_is_read_by_the_adapter() {
        let response = |status| HttpResponse {
            status,
            retry_after: Some(Duration::from_secs(1)),
            body: Ok(b"full".to_vec()),
        };
        let read = |response: &HttpResponse| match response.status {
            202 => Outcome::Accepted,
            _ => Outcome::Busy,
        };
        let answer = submission_answer(Ok(response(503)), read);
        assert_eq!((answer.outcome, answer.status), (Outcome::Busy, Some(503)));
        assert_eq!(answer.message.as_deref(), Some("full"));
        assert_eq!(answer.retry_after, Some(Duration::from_secs(1)));
        assert_eq!(submission_answer(Ok(response(202)), read).message, None);
    }

    #[test]
    fn batch_without_a_response_may_have_arrived() {
        let text = || "x".to_owned();
        for (error, outcome) in [
            (HttpError::NotSent(text()), Outcome::NotSent),
            (HttpError::InvalidRequest(text()), Outcome::Refused),
            (HttpError::NoResponse(text()), Outcome::Ambiguous),
            (HttpError::TimedOut(text()), Outcome::Ambiguous),
            (HttpError::TooLong { limit: 1 }, Outcome::Ambiguous),
        ] {
            let answer = submission_answer(Err(error), |_| unreachable!());
            assert_eq!((answer.outcome, answer.status), (outcome, None));
        }
    }
}
