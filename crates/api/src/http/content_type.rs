use std::fmt;

use axum::http::{HeaderMap, header::CONTENT_TYPE};
use grid_batch_core::Excerpt;

/// A Content-Type other than the expected one. Its text says what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherContentType(Option<Excerpt>);

impl fmt::Display for OtherContentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(given) => write!(f, "not {given}"),
            None => f.write_str("and it is missing"),
        }
    }
}

/// Checks the Content-Type of a list of batches.
///
/// Grid's clients send none. They are known by a header that a browser sends for no page without asking
/// the server first.
pub(crate) fn batch_content_type(headers: &HeaderMap) -> Result<(), OtherContentType> {
    const OF_GRID_CLIENTS: &str = "gridprotocolversion";
    if !headers.contains_key(CONTENT_TYPE) && headers.contains_key(OF_GRID_CLIENTS) {
        return Ok(());
    }
    content_type(headers, "application/octet-stream")
}

/// Checks the Content-Type of a JSON body.
pub(crate) fn json_content_type(headers: &HeaderMap) -> Result<(), OtherContentType> {
    content_type(headers, "application/json")
}

/// A web page may send forms, plain text, and bodies without a type to any server. So only the one type
/// is accepted, and only once.
fn content_type(headers: &HeaderMap, expected: &str) -> Result<(), OtherContentType> {
    let given: Vec<String> = headers
        .get_all(CONTENT_TYPE)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect();
    let [one] = &given[..] else {
        let several = (!given.is_empty()).then(|| Excerpt::of(&given.join(", ")));
        return Err(OtherContentType(several));
    };
    let essence = one.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(expected) {
        Ok(())
    } else {
        Err(OtherContentType(Some(Excerpt::of(one))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn type_must_be_given_once_and_be_the_expected_one() {
        let json = "application/json";
        for value in [json, "Application/JSON", "application/json; charset=utf-8"] {
            assert_eq!(json_content_type(&headers(&[("content-type", value)])), Ok(()));
        }
        for value in
            ["", "text/plain", "text/plain; application/json", "application/json, text/plain"]
        {
            let other = Err(OtherContentType(Some(Excerpt::of(value))));
            assert_eq!(json_content_type(&headers(&[("content-type", value)])), other, "{value}");
        }
        assert_eq!(json_content_type(&headers(&[])), Err(OtherContentType(None)));
        assert!(json_content_type(&headers(&[("content-type", json); 2])).is_err());
    }

    #[test]
    fn only_grid_clients_leave_the_type_of_batches_out() {
        let grid = ("gridprotocolversion", "1");
        assert_eq!(batch_content_type(&headers(&[grid])), Ok(()));
        assert!(batch_content_type(&headers(&[])).is_err());
        assert!(batch_content_type(&headers(&[grid, ("content-type", "text/plain")])).is_err());
        assert!(json_content_type(&headers(&[grid])).is_err());
    }
}
