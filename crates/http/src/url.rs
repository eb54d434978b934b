use grid_batch_support::redact_url;
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
/// assert_eq!(join("http://b\u{fc}cher.example", "batches")?, "http://xn--bcher-kva.example/batches");
/// assert!(join("http://ledger:8008/?key=1", "batches").is_err());
/// assert!(join("ledger:8008", "batches").is_err());
/// # Ok::<(), grid_batch_http::HttpError>(())
/// ```
pub fn join(base: &str, path: &str) -> Result<String, HttpError> {
    let url = parse(base, HTTP_SCHEMES)?;
    if url.fragment().is_some() || url.query().is_some() {
        return Err(HttpError::InvalidRequest(format!(
            "the base URL at {} has a query or a fragment; remove it",
            origin_of(&url)
        )));
    }
    // They would lead out of the path of the base URL.
    if path.split(['/', '?', '#']).any(is_dots) {
        return Err(HttpError::InvalidRequest("the path has a segment of dots".to_owned()));
    }
    let base = url.as_str().trim_end_matches('/');
    Ok(format!("{base}/{}", path.trim_start_matches('/')))
}

fn is_dots(segment: &str) -> bool {
    matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
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
        Ok(url) if url.has_host() => origin_of(&url),
        _ => "<invalid URL>".to_owned(),
    }
}

pub(crate) fn origin_of(url: &Url) -> String {
    redact_url(url.as_str())
}

/// Parses a URL that has one of these schemes.
pub(crate) fn parse(text: &str, schemes: &[&str]) -> Result<Url, HttpError> {
    let invalid =
        |reason: &str| HttpError::InvalidRequest(format!("cannot parse the URL: {reason}"));
    let text = text.trim_matches(|c: char| c <= ' ');
    let (scheme, rest) = text.split_once(':').ok_or_else(|| invalid("it has no scheme"))?;
    if !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) {
        return Err(invalid("its scheme is invalid"));
    }
    if !schemes.contains(&scheme.to_ascii_lowercase().as_str()) {
        let expected: Vec<String> = schemes.iter().map(|it| format!("{it}://")).collect();
        return Err(HttpError::InvalidRequest(format!(
            "the URL starts with {:?}; it must start with {}",
            format!("{scheme}:"),
            expected.join(" or ")
        )));
    }
    // Browsers complete such a URL, which here is a mistake.
    if !rest.starts_with("//") || rest.starts_with("///") {
        return Err(invalid("// and a host are missing after the scheme"));
    }
    let authority = rest[2..].split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('\\') {
        return Err(invalid("its host has an invalid character"));
    }
    Url::parse(text).map_err(|error| invalid(&error.to_string()))
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
            ("https://h:443", "a", "https://h/a"),
            ("https://h:80", "a", "https://h:80/a"),
            ("http://u:p@b\u{fc}cher.example:1/b", "a", "http://u:p@xn--bcher-kva.example:1/b/a"),
            ("http://日本語。jp", "a", "http://xn--wgv71a119e.jp/a"),
        ] {
            assert_eq!(join(base, path).unwrap(), joined);
        }
    }

    #[test]
    fn path_does_not_leave_the_base_url() {
        for path in ["..", "/../a", "a/./b", "a/%2E%2e/b?c", "..?a"] {
            assert!(
                matches!(join("http://h/b", path), Err(HttpError::InvalidRequest(_))),
                "{path}"
            );
        }
        assert_eq!(join("http://h/b", "a?c=../d..").unwrap(), "http://h/b/a?c=../d..");
    }

    #[test]
    fn parts_of_a_url() {
        let parts = |text| {
            let url = parse(text, WEBSOCKET_SCHEMES).unwrap();
            let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
            let path_and_query = format!("{}{query}", url.path());
            (
                url.host_str().unwrap().to_owned(),
                url.port_or_known_default().unwrap(),
                path_and_query,
            )
        };
        let expected = |host: &str, port, path: &str| (host.to_owned(), port, path.to_owned());
        assert_eq!(parts("http://h"), expected("h", 80, "/"));
        assert_eq!(parts("wss://h:/a#b"), expected("h", 443, "/a"));
        assert_eq!(parts("HTTP://h:8008?q=1"), expected("h", 8008, "/?q=1"));
        assert_eq!(parts("http://a@b:c@[2001:DB8::1]/"), expected("[2001:db8::1]", 80, "/"));
        assert_eq!(parts("http://h/a b/ü?q=\"%20"), expected("h", 80, "/a%20b/%C3%BC?q=%22%20"));
    }

    #[test]
    fn invalid_base_url_is_refused_without_its_secrets() {
        for base in [
            "",
            "ledger",
            "ledger:8008",
            "user:secret@ledger",
            "http://",
            "http:ledger/secret",
            "http:///secret",
            "http://user:secret@",
            "http://user:secret@ledger:port",
            "http://user:secret@ledger:65536",
            "http://user:secret@ledger:+1",
            "http://user:secret@[ledger]",
            "http://user:secret@[::1",
            "http://user:secret@b\u{fc}\u{0}cher",
            "http://user:secret@led\\ger",
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
