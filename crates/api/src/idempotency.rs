use axum::http::HeaderMap;

use crate::{error::ApiError, members::Members};

/// The member of a body that a key may be given by.
pub(crate) const MEMBER: &str = "idempotency_key";
const HEADER: &str = "idempotency-key";
const MOST_CHARACTERS: usize = 255;

/// The name that a client gives to what it asks for, so that it can ask again and get it once.
///
/// It is taken as it stands, from the header or from the body.
pub(crate) fn key(headers: &HeaderMap, members: &mut Members) -> Result<Option<String>, ApiError> {
    let mut given = Vec::from_iter(members.optional_text(MEMBER)?);
    for value in headers.get_all(HEADER) {
        given.push(String::from_utf8(value.as_bytes().to_vec()).map_err(|_| ApiError::Key)?);
    }
    let Some(key) = given.pop() else { return Ok(None) };
    if given.iter().any(|other| *other != key) {
        return Err(ApiError::TwoKeys);
    }
    let follows_rule = !key.is_empty()
        && key.chars().count() <= MOST_CHARACTERS
        && !key.chars().any(char::is_control);
    if follows_rule { Ok(Some(key)) } else { Err(ApiError::Key) }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(headers: &[&[u8]], body: &str) -> Result<Option<String>, ApiError> {
        let value = |bytes: &&[u8]| HeaderValue::from_bytes(bytes).unwrap();
        let headers = headers.iter().map(|bytes| (HEADER.parse().unwrap(), value(bytes)));
        let mut members = Members::parse(body.as_bytes(), &[MEMBER]).unwrap();
        key(&HeaderMap::from_iter(headers), &mut members)
    }

    fn body(key: &str) -> String {
        serde_json::json!({ MEMBER: key }).to_string()
    }

    #[test]
    fn a_key_is_in_the_header_or_the_body_or_the_same_in_both() {
        let some = |key: &str| Ok(Some(key.to_owned()));
        assert_eq!(read(&[], "{}"), Ok(None));
        assert_eq!(read(&[b"a b"], "{}"), some("a b"));
        assert_eq!(read(&["é".as_bytes()], "{}"), some("é"));
        assert_eq!(read(&[], &body("a")), some("a"));
        assert_eq!(read(&[b"a", b"a"], &body("a")), some("a"));
        assert_eq!(read(&[], &body(&"é".repeat(255))), some(&"é".repeat(255)));
    }

    #[test]
    fn other_keys_are_refused() {
        assert_eq!(read(&[b"a"], &body("b")), Err(ApiError::TwoKeys));
        assert_eq!(read(&[b"a", b"b"], "{}"), Err(ApiError::TwoKeys));
        assert_eq!(read(&[b"\xff"], "{}"), Err(ApiError::Key));
        for key in ["", "\n", "a\u{0}", &"x".repeat(256)] {
            assert_eq!(read(&[], &body(key)), Err(ApiError::Key), "{key:?}");
        }
    }
}
