use grid_batch_http::HttpResponse;
use grid_batch_support::one_line;
use serde::Deserialize;

/// The text of a response for messages: the node's error message, or the body.
pub(crate) fn response_message(response: &HttpResponse) -> String {
    match error_message(response) {
        Some(message) => redacted_line(&message),
        None => redacted_line(&response.text()),
    }
}

/// The beginning of a text as one line. A text with the token is hidden, because a proxy may repeat the request's
/// headers.
pub(crate) fn redacted_line(text: &str) -> String {
    let text = one_line(text);
    if text.contains("Cylinder:") { "<text that contains the token>".to_owned() } else { text }
}

/// The message in the body of a Scabbard error.
pub(crate) fn error_message(response: &HttpResponse) -> Option<String> {
    #[derive(Deserialize)]
    struct ErrorBody {
        message: String,
    }

    let body = response.body.as_ref().ok()?;
    let error: ErrorBody = serde_json::from_slice(body).ok()?;
    Some(error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(body: &str) -> HttpResponse {
        HttpResponse { status: 400, retry_after: None, body: Ok(body.into()) }
    }

    #[test]
    fn message_of_an_error_or_the_body_is_shown() {
        let error = response(r#"{"code":"400","message":"No valid\nbatches"}"#);
        assert_eq!(response_message(&error), "No valid batches");
        assert_eq!(response_message(&response("<html>no</html>")), "<html>no</html>");
        assert_eq!(response_message(&response(r#"{"message":7}"#)), r#"{"message":7}"#);
    }

    #[test]
    fn repeated_token_is_not_shown() {
        let echo = response("you sent Authorization: Bearer Cylinder:abc.def.ghi");
        assert!(!response_message(&echo).contains("abc"));
    }
}
