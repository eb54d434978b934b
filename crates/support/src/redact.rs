use std::borrow::Cow;

/// The text without the user names and passwords of its URLs. Libraries often repeat a whole URL in their errors.
pub fn redact_userinfo(text: &str) -> Cow<'_, str> {
    if !(text.contains("://") && text.contains('@')) {
        return Cow::Borrowed(text);
    }
    let mut rest = text;
    let mut clean = String::with_capacity(text.len());
    while let Some(scheme_end) = rest.find("://") {
        let (scheme, address) = rest.split_at(scheme_end + "://".len());
        clean.push_str(scheme);
        let userinfo = authority(address).rfind('@').map_or(0, |at| at + 1);
        rest = &address[userinfo..];
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

/// Scheme, host and port of a URL, which identify a node. Its path and query may hold secrets.
///
/// ```
/// use grid_batch_support::redact_url;
///
/// assert_eq!(redact_url("http://user:secret@ledger:8008/key?token=1"), "http://ledger:8008");
/// ```
pub fn redact_url(url: &str) -> String {
    let (scheme, address) = match url.find("://") {
        Some(at) => url.split_at(at + "://".len()),
        None => ("", url),
    };
    let authority = authority(address);
    let host = authority.rsplit_once('@').map_or(authority, |(_userinfo, host)| host);
    format!("{scheme}{host}")
}

/// The URL with `***` instead of its password, and without its query, which may hold one. If an HTTP URL has a user but
/// no password, `***` replaces the user.
///
/// ```
/// use grid_batch_support::redact_password;
///
/// let url = "postgres://batch:secret@db.example/batches?sslpassword=secret";
/// assert_eq!(redact_password(url), "postgres://batch:***@db.example/batches");
/// ```
pub fn redact_password(url: &str) -> String {
    let (scheme, rest) = match url.find("://") {
        Some(at) => url.split_at(at + "://".len()),
        None => ("", url),
    };
    // A password may contain an unescaped @. The host follows the last one.
    let Some((user, host)) = rest.rsplit_once('@') else {
        return format!("{scheme}{}", without_query(rest));
    };
    // The @ may be in a parameter, or the / in a password, so any part may be secret.
    if user.contains(['/', '?', '#']) {
        return format!("{scheme}***");
    }
    let host = without_query(host);
    match user.split_once(':') {
        Some((name, _)) => format!("{scheme}{name}:***@{host}"),
        // Some HTTP services take a key as the user.
        None if scheme.ends_with("http://") || scheme.ends_with("https://") => {
            format!("{scheme}***@{host}")
        }
        None => format!("{scheme}{user}@{host}"),
    }
}

fn without_query(text: &str) -> &str {
    &text[..text.find(['?', '#']).unwrap_or(text.len())]
}

fn authority(address: &str) -> &str {
    let ends = |c: char| matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>') || c.is_whitespace();
    &address[..address.find(ends).unwrap_or(address.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn userinfo_is_removed_from_every_url() {
        for (text, clean) in [
            ("no address", "no address"),
            ("mail a@b about http://h", "mail a@b about http://h"),
            ("http://u:p@h/x@y", "http://h/x@y"),
            ("(http://u:p@q@h:1) or ws://é:p@i?z", "(http://h:1) or ws://i?z"),
            ("http://", "http://"),
        ] {
            assert_eq!(redact_userinfo(text), clean);
        }
    }

    #[test]
    fn redacted_url_has_no_path_or_query() {
        assert_eq!(redact_url("https://u:p@node-1:8008/key?token=x"), "https://node-1:8008");
        assert_eq!(redact_url("node-1/key"), "node-1");
        assert_eq!(redact_url("u:p@node-1/key"), "node-1");
        assert_eq!(redact_url(""), "");
    }

    #[test]
    fn password_is_hidden_wherever_it_is() {
        for url in [
            "postgres://u:hidden@h/db",
            "postgres://u:hid@den:hidden@h/db",
            "postgresql:///db?user=u&password=hidden",
            "postgres://u:hidden@h:5432/db?sslpassword=hidden",
            "postgres://u:x?hidden@h/db",
            "postgres://u:x/hidden@h/db",
            "postgres://u:x#hidden@h/db?y=hidden",
            "postgres:///db?password=hidden&user=a@b",
            "postgres:///db?user=a@b&password=hidden",
            "postgres://u:p://hidden@h/db",
        ] {
            assert!(!redact_password(url).contains("den"), "{url}");
        }
        assert_eq!(redact_password("postgres://u@h/db"), "postgres://u@h/db");
        assert_eq!(redact_password("h/db"), "h/db");
    }
}
