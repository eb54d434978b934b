use axum::http::HeaderMap;

use crate::{http::ApiError, withdrawals::WithdrawalRequestError};

const KEY_HEADER: &str = "idempotency-key";
const MAX_CHARACTERS: usize = 255;

/// The idempotency key in the header or in the body. It is used as it is, without trimming.
pub(crate) fn idempotency_key(
    headers: &HeaderMap,
    in_body: Option<String>,
) -> Result<Option<String>, ApiError> {
    let mut keys = Vec::from_iter(in_body);
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

    fn take(headers: &[&[u8]], in_body: Option<&str>) -> Result<Option<String>, ApiError> {
        let value = |bytes: &&[u8]| HeaderValue::from_bytes(bytes).unwrap();
        let headers = headers.iter().map(|bytes| (KEY_HEADER.parse().unwrap(), value(bytes)));
        idempotency_key(&HeaderMap::from_iter(headers), in_body.map(str::to_owned))
    }

    #[test]
    fn key_is_taken_from_the_header_or_the_body() {
        let some = |key: &str| Ok(Some(key.to_owned()));
        assert_eq!(take(&[], None), Ok(None));
        assert_eq!(take(&[b"a b"], None), some("a b"));
        assert_eq!(take(&["é".as_bytes()], None), some("é"));
        assert_eq!(take(&[], Some("a")), some("a"));
        assert_eq!(take(&[b"a", b"a"], Some("a")), some("a"));
        assert_eq!(take(&[], Some(&"é".repeat(255))), some(&"é".repeat(255)));
    }

    #[test]
    fn different_or_invalid_keys_are_refused() {
        assert_eq!(
            take(&[b"a"], Some("b")),
            Err(WithdrawalRequestError::DifferentIdempotencyKeys.into())
        );
        assert_eq!(
            take(&[b"a", b"b"], None),
            Err(WithdrawalRequestError::DifferentIdempotencyKeys.into())
        );
        assert_eq!(
            take(&[b"\xff"], None),
            Err(WithdrawalRequestError::InvalidIdempotencyKey.into())
        );
        for key in ["", "\n", "a\u{0}", &"x".repeat(256)] {
            assert_eq!(
                take(&[], Some(key)),
                Err(WithdrawalRequestError::InvalidIdempotencyKey.into()),
                "{key:?}"
            );
        }
    }
}
