use grid_batch_core::ledger::{Outcome, SubmissionAnswer};
use grid_batch_http::{HttpError, HttpResponse, submission_answer};

use crate::message::{error_message, response_message};

/// The answer to a submission, from the result of its POST.
pub(crate) fn read_answer(result: Result<HttpResponse, HttpError>) -> SubmissionAnswer {
    let message = result.as_ref().ok().map(|response| match response_message(response) {
        empty if empty.is_empty() => outcome(response).1.to_owned(),
        message => message,
    });
    let answer = submission_answer(result, |response| outcome(response).0);
    SubmissionAnswer { message: message.or(answer.message), ..answer }
}

/// The outcome that a response means, and the reason. The status decides even if the body does not arrive.
fn outcome(response: &HttpResponse) -> (Outcome, &'static str) {
    use Outcome::{Accepted, Ambiguous, Busy, Refused, Rejected};
    let error = error_message(response).unwrap_or_default();
    match response.status {
        200 => (Accepted, "as 202"),
        202 => (Accepted, "the node has queued the batch"),
        300..=399 => (Refused, "the URL is wrong"),
        400 if error.starts_with("Invalid body") => {
            (Rejected, "the bytes are not a list of batches")
        }
        400 if error.starts_with("No valid batches") => {
            (Rejected, "a signature, a hash or a list of transactions is invalid")
        }
        400 => (Refused, "the node has another protocol version, or a proxy refuses the request"),
        401 => (Refused, "the key is unknown, or may not submit batches"),
        404 => (Refused, "the service is not on this node, or not started yet"),
        408 => (Ambiguous, "a proxy timed out; the node may have the request"),
        413 => (Rejected, "the batch is too long for a proxy"),
        429 => (Busy, "the queue is full, and the node accepted nothing"),
        402..=499 => (Refused, "the request is not supported"),
        503 => (Ambiguous, "nodes do not send this status; a proxy may have passed the request on"),
        500..=599 => (Ambiguous, "the node may have queued the batch"),
        _ => (Ambiguous, "the response is incomplete or not from a node"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_and_error_has_an_outcome() {
        use Outcome::{Accepted, Ambiguous, Busy, NotSent, Refused, Rejected};
        let status = |status, body: &str| {
            outcome(&HttpResponse { status, retry_after: None, body: Ok(body.into()) }).0
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
            assert_eq!(read_answer(Err(error.clone())).outcome, expected, "{error}");
        }
    }

    #[test]
    fn status_decides_even_if_the_body_breaks() {
        for (status, expected) in
            [(202, Outcome::Accepted), (400, Outcome::Refused), (429, Outcome::Busy)]
        {
            let body = Err(HttpError::NoResponse("connection reset".to_owned()));
            let response = HttpResponse { status, retry_after: None, body };
            assert_eq!(read_answer(Ok(response)).outcome, expected);
        }
    }
}
