use grid_batch_http::{HttpResponse, one_line};
use serde::Deserialize;

/// What a node says in words.
pub(crate) fn words_of(answer: &HttpResponse) -> String {
    match message_of(answer) {
        Some(message) => shown(&message),
        None => shown(&answer.text()),
    }
}

/// A text from outside as it may be shown to people. Something between may repeat what it was sent.
pub(crate) fn shown(text: &str) -> String {
    let text = one_line(text);
    if text.contains("Cylinder:") { "something that repeats the token".to_owned() } else { text }
}

/// The message of Scabbard's errors.
pub(crate) fn message_of(answer: &HttpResponse) -> Option<String> {
    #[derive(Deserialize)]
    struct Error {
        message: String,
    }

    let body = answer.body.as_ref().ok()?;
    let error: Error = serde_json::from_slice(body).ok()?;
    Some(error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &str) -> HttpResponse {
        HttpResponse { status: 400, retry_after: None, body: Ok(body.into()) }
    }

    #[test]
    fn an_error_is_told_by_its_message_and_all_else_as_it_is() {
        let error = answer(r#"{"code":"400","message":"No valid\nbatches"}"#);
        assert_eq!(words_of(&error), "No valid batches");
        assert_eq!(words_of(&answer("<html>no</html>")), "<html>no</html>");
        assert_eq!(words_of(&answer(r#"{"message":7}"#)), r#"{"message":7}"#);
    }

    #[test]
    fn a_token_that_comes_back_is_not_shown() {
        let echo = answer("you sent Authorization: Bearer Cylinder:abc.def.ghi");
        assert!(!words_of(&echo).contains("abc"));
    }
}
