use reqwest::Url;

use crate::HttpError;

pub(crate) const HTTP_SCHEMES: &[&str] = &["http", "https"];
pub(crate) const WEBSOCKET_SCHEMES: &[&str] = &["http", "https", "ws", "wss"];

/// Appends a path to a base URL. The base URL may have a path, and may end with a slash.
///
/// ```
/// use grid_batch_http::join;
///
/// assert_eq!(join("http://ledger:8008", "batches")?, "http://ledger:8008/batches");
/// assert_eq!(join("http://proxy/sawtooth/", "/batches")?, "http://proxy/sawtooth/batches");
/// assert!(join("http://ledger:8008/?key=1", "batches").is_err());
/// assert!(join("ledger:8008", "batches").is_err());
/// # Ok::<(), grid_batch_http::HttpError>(())
/// ```
pub fn join(base: &str, path: &str) -> Result<String, HttpError> {
    let url = parse(base, HTTP_SCHEMES)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(HttpError::InvalidRequest(format!(
            "the base URL at {} has a query or a fragment; remove it",
            ascii_origin(&url)
        )));
    }
    Ok(format!("{}/{}", url.as_str().trim_end_matches('/'), path.trim_start_matches('/')))
}

/// Scheme, host and port of a URL, for messages. Its other parts may be secrets.
///
/// ```
/// use grid_batch_http::origin;
///
/// assert_eq!(origin("http://user:secret@ledger:8008/key?token=1"), "http://ledger:8008");
/// assert_eq!(origin("not a URL"), "<invalid URL>");
/// ```
pub fn origin(url: &str) -> String {
    match Url::parse(url) {
        Ok(url) if url.has_host() => ascii_origin(&url),
        _ => "<invalid URL>".to_owned(),
    }
}

/// Parses a URL that has one of these schemes.
pub(crate) fn parse(text: &str, schemes: &[&str]) -> Result<Url, HttpError> {
    let url = Url::parse(text)
        .map_err(|error| HttpError::InvalidRequest(format!("cannot parse the URL: {error}")))?;
    if !schemes.contains(&url.scheme()) {
        return Err(HttpError::InvalidRequest(format!(
            "the URL starts with {:?}; it must start with {}",
            format!("{}:", url.scheme()),
            schemes.iter().map(|scheme| format!("{scheme}://")).collect::<Vec<_>>().join(" or ")
        )));
    }
    Ok(url)
}

fn ascii_origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_joined_with_one_slash() {
        for (base, path, joined) in [
            ("http://h", "a/b?c=d", "http://h/a/b?c=d"),
            ("http://h/", "/a", "http://h/a"),
            ("https://h:1//", "a", "https://h:1/a"),
            (" http://H/base/path/ ", "a", "http://h/base/path/a"),
            ("http://u:p@[::1]:8008", "a", "http://u:p@[::1]:8008/a"),
        ] {
            assert_eq!(join(base, path).unwrap(), joined);
        }
    }

    #[test]
    fn invalid_base_url_is_refused_without_its_secrets() {
        for base in [
            "",
            "ledger",
            "ledger:8008",
            "user:secret@ledger",
            "http://",
            "http://user:secret@ledger:port",
            "ws://user:secret@ledger",
            "http://user:secret@ledger?secret",
            "http://ledger#secret",
            "/secret",
        ] {
            let error = join(base, "a").unwrap_err();
            assert!(matches!(error, HttpError::InvalidRequest(_)), "{base}: {error}");
            assert!(!error.to_string().contains("secret"), "{base}: {error}");
        }
    }

    #[test]
    fn message_names_the_expected_schemes() {
        let message = |base| join(base, "a").unwrap_err().to_string();
        assert!(
            message("ledger:8008").ends_with(
                "the URL starts with \"ledger:\"; it must start with http:// or https://"
            ),
            "{}",
            message("ledger:8008")
        );
        assert!(message("http://h:1/p?q").contains("at http://h:1 has a query or a fragment"));
    }
}
