use axum::http::HeaderMap;

use crate::{
    http::{ApiError, JsonObject},
    withdrawals::WithdrawalRequestError,
};

/// The field of a body that may have the key.
pub(crate) const KEY_FIELD: &str = "idempotency_key";
const KEY_HEADER: &str = "idempotency-key";
const MAX_CHARACTERS: usize = 255;

/// Takes the idempotency key from the header or from the body. It is used as it is, without trimming.
pub(crate) fn take_idempotency_key(
    headers: &HeaderMap,
    fields: &mut JsonObject,
) -> Result<Option<String>, ApiError> {
    let mut keys = Vec::from_iter(fields.optional_string(KEY_FIELD)?);
    for value in headers.get_all(KEY_HEADER) {
        let key = String::from_utf8(value.as_bytes().to_vec());
        keys.push(key.map_err(|_| WithdrawalRequestError::InvalidIdempotencyKey)?);
    }
    let Some(key) = keys.pop() else { return Ok(None) };
    if keys.iter().any(|other| *other != key) {
        return Err(WithdrawalRequestError::DifferentIdempotencyKeys.into());
    }
    if is_valid(&key) {
        Ok(Some(key))
    } else {
        Err(WithdrawalRequestError::InvalidIdempotencyKey.into())
    }
}

fn is_valid(key: &str) -> bool {
    (1..=MAX_CHARACTERS).contains(&key.chars().count()) && !key.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn take(headers: &[&[u8]], body: &str) -> Result<Option<String>, ApiError> {
        let value = |bytes: &&[u8]| HeaderValue::from_bytes(bytes).unwrap();
        let headers = headers.iter().map(|bytes| (KEY_HEADER.parse().unwrap(), value(bytes)));
        let mut fields = JsonObject::parse(body.as_bytes(), &[KEY_FIELD]).unwrap();
        take_idempotency_key(&HeaderMap::from_iter(headers), &mut fields)
    }

    fn body(key: &str) -> String {
        serde_json::json!({ KEY_FIELD: key }).to_string()
    }

    #[test]
    fn key_is_taken_from_the_header_or_the_body() {
        let some = |key: &str| Ok(Some(key.to_owned()));
        assert_eq!(take(&[], "{}"), Ok(None));
        assert_eq!(take(&[b"a b"], "{}"), some("a b"));
        assert_eq!(take(&["é".as_bytes()], "{}"), some("é"));
        assert_eq!(take(&[], &body("a")), some("a"));
        assert_eq!(take(&[b"a", b"a"], &body("a")), some("a"));
        assert_eq!(take(&[], &body(&"é".repeat(255))), some(&"é".repeat(255)));
    }

    #[test]
    fn different_or_invalid_keys_are_refused() {
        assert_eq!(
            take(&[b"a"], &body("b")),
            Err(WithdrawalRequestError::DifferentIdempotencyKeys.into())
        );
        assert_eq!(
            take(&[b"a", b"b"], "{}"),
            Err(WithdrawalRequestError::DifferentIdempotencyKeys.into())
        );
        assert_eq!(
            take(&[b"\xff"], "{}"),
            Err(WithdrawalRequestError::InvalidIdempotencyKey.into())
        );
        for key in ["", "\n", "a\u{0}", &"x".repeat(256)] {
            assert_eq!(
                take(&[], &body(key)),
                Err(WithdrawalRequestError::InvalidIdempotencyKey.into()),
                "{key:?}"
            );
        }
    }
}
