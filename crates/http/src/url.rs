use std::net::Ipv6Addr;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::HttpError;

pub(crate) const HTTP_SCHEMES: &[&str] = &["http", "https"];
pub(crate) const WEBSOCKET_SCHEMES: &[&str] = &["http", "https", "ws", "wss"];

/// What a path and a query must not contain as it is.
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The parts of a URL.
///
/// It has no `Debug`, because it may have a password.
pub(crate) struct Url {
    pub(crate) scheme: String,
    /// User name and password as they are written, without the `@`.
    pub(crate) user_info: Option<String>,
    /// A name or an address, in lower case. An IPv6 address is in brackets.
    pub(crate) host: String,
    /// `None` if it is the port of the scheme.
    port: Option<u16>,
    /// It starts with a slash.
    pub(crate) path_and_query: String,
    has_fragment: bool,
}

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
    let url = Url::parse(base, HTTP_SCHEMES)?;
    if url.has_fragment || url.path_and_query.contains('?') {
        return Err(HttpError::InvalidRequest(format!(
            "the base URL at {} has a query or a fragment; remove it",
            url.origin()
        )));
    }
    let (user_info, at) = match &url.user_info {
        Some(user_info) => (user_info.as_str(), "@"),
        None => ("", ""),
    };
    let (base, path) = (url.path_and_query.trim_end_matches('/'), path.trim_start_matches('/'));
    Ok(format!("{}://{user_info}{at}{}{base}/{path}", url.scheme, url.authority()))
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
    match split_scheme(url).and_then(|(scheme, rest)| Url::after_scheme(scheme, rest)) {
        Ok(url) => url.origin(),
        Err(_) => "<invalid URL>".to_owned(),
    }
}

impl Url {
    /// Parses a URL that has one of these schemes.
    pub(crate) fn parse(text: &str, schemes: &[&str]) -> Result<Self, HttpError> {
        let (scheme, rest) = split_scheme(text)?;
        if !schemes.contains(&scheme.as_str()) {
            return Err(HttpError::InvalidRequest(format!(
                "the URL starts with {:?}; it must start with {}",
                format!("{scheme}:"),
                schemes
                    .iter()
                    .map(|scheme| format!("{scheme}://"))
                    .collect::<Vec<_>>()
                    .join(" or ")
            )));
        }
        Self::after_scheme(scheme, rest)
    }

    fn after_scheme(scheme: String, rest: &str) -> Result<Self, HttpError> {
        let rest =
            rest.strip_prefix("//").ok_or_else(|| invalid("// is missing after the scheme"))?;
        let (rest, has_fragment) =
            rest.split_once('#').map_or((rest, false), |(rest, _)| (rest, true));
        let (authority, path_and_query) =
            rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user_info, host_and_port) = match authority.rsplit_once('@') {
            Some((user_info, host)) => (Some(user_info.to_owned()), host),
            None => (None, authority),
        };
        let (host, port) = split_port(host_and_port)?;
        let slash = if path_and_query.starts_with('/') { "" } else { "/" };
        Ok(Self {
            host: parse_host(host)?,
            port: port.filter(|port| Some(*port) != default_port(&scheme)),
            scheme,
            user_info,
            path_and_query: format!("{slash}{}", utf8_percent_encode(path_and_query, ENCODED)),
            has_fragment,
        })
    }

    /// Host and port, without the port of the scheme.
    pub(crate) fn authority(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority())
    }

    /// The origin of the same server for requests, if this is the URL of a websocket.
    pub(crate) fn http_origin(&self) -> String {
        let scheme = if self.is_encrypted() { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.scheme.as_str(), "https" | "wss")
    }

    /// The host as the resolver expects it: an IPv6 address without brackets.
    pub(crate) fn host_name(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(crate) fn port_or_default(&self) -> u16 {
        self.port.or_else(|| default_port(&self.scheme)).unwrap_or_default()
    }
}

fn invalid(reason: &str) -> HttpError {
    HttpError::InvalidRequest(format!("cannot parse the URL: {reason}"))
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        _ => None,
    }
}

/// The scheme in lower case, and what follows its colon.
fn split_scheme(url: &str) -> Result<(String, &str), HttpError> {
    let url = url.trim_matches(|c: char| c <= ' ');
    let (scheme, rest) = url.split_once(':').ok_or_else(|| invalid("it has no scheme"))?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if !is_scheme {
        return Err(invalid("its scheme is invalid"));
    }
    Ok((scheme.to_ascii_lowercase(), rest))
}

fn split_port(host_and_port: &str) -> Result<(&str, Option<u16>), HttpError> {
    let colon = host_and_port.rfind(':').filter(|colon| !host_and_port[*colon..].contains(']'));
    let Some(colon) = colon else { return Ok((host_and_port, None)) };
    let (host, port) = (&host_and_port[..colon], &host_and_port[colon + 1..]);
    if port.is_empty() {
        return Ok((host, None));
    }
    let port = port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok()).flatten();
    Ok((host, Some(port.ok_or_else(|| invalid("its port is not a number from 0 to 65535"))?)))
}

fn parse_host(host: &str) -> Result<String, HttpError> {
    if host.is_empty() {
        return Err(invalid("it has no host"));
    }
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let address: Ipv6Addr =
            address.parse().map_err(|_| invalid("its IPv6 address is invalid"))?;
        return Ok(format!("[{address}]"));
    }
    if !host.is_ascii() {
        return Err(invalid("its host has other characters than ASCII; write its name as xn--..."));
    }
    if !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        return Err(invalid("its host has an invalid character"));
    }
    Ok(host.to_ascii_lowercase())
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
        ] {
            assert_eq!(join(base, path).unwrap(), joined);
        }
    }

    #[test]
    fn parts_of_a_url() {
        let parts = |text| {
            let url = Url::parse(text, WEBSOCKET_SCHEMES).unwrap();
            (url.host_name().to_owned(), url.port_or_default(), url.path_and_query.clone())
        };
        let expected = |host: &str, port, path: &str| (host.to_owned(), port, path.to_owned());
        assert_eq!(parts("http://h"), expected("h", 80, "/"));
        assert_eq!(parts("wss://h:/a#b"), expected("h", 443, "/a"));
        assert_eq!(parts("HTTP://h:8008?q=1"), expected("h", 8008, "/?q=1"));
        assert_eq!(parts("http://a@b:c@[2001:DB8::1]/"), expected("2001:db8::1", 80, "/"));
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
            "http://user:secret@",
            "http://user:secret@ledger:port",
            "http://user:secret@ledger:65536",
            "http://user:secret@ledger:+1",
            "http://user:secret@[ledger]",
            "http://user:secret@[::1",
            "http://user:secret@b\u{fc}cher",
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
