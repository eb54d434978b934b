//! Texts that may hold a secret, and how they are shown.

use std::borrow::Cow;

use grid_batch_support::redact_password;

/// What errors show in place of a value that may hold a secret.
pub const NOT_SHOWN: &str = "not shown";

/// Stands for a secret in a text that is shown.
pub(crate) const PLACEHOLDER: &str = "***";

/// Whether an error must not show the text: it looks like a URL with a user or parameters, a connection
/// string, or a key.
pub fn may_hold_secret(text: &str) -> bool {
    let has_user_or_parameters = text
        .split_once("://")
        .is_some_and(|(_, rest)| rest.contains(['@', '?', '#', '%']) || is_key_in_path(rest));
    has_user_or_parameters || has_assigned_secret(text) || has_key(text)
}

/// `password=...` and the like.
fn has_assigned_secret(text: &str) -> bool {
    text.split(|c: char| c.is_whitespace() || "&?,;".contains(c))
        .filter_map(|part| part.split_once('='))
        .any(|(name, _)| is_secret_name(name))
}

fn has_key(text: &str) -> bool {
    const SHORTEST_KEY: usize = 32;
    const ADDRESS: usize = 40;
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .map(|word| word.strip_prefix("0x").unwrap_or(word))
        .filter(|word| word.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .any(|digits| digits.len() >= SHORTEST_KEY && digits.len() != ADDRESS)
}

/// The text of a URL, or of a list item that ends in one, with `***` for its secrets: the password, the
/// parameters whose names say so, and path segments that look like a key. Other text as it is.
pub fn redact_secrets(text: &str) -> Cow<'_, str> {
    let Some(scheme_end) = text.find("://") else { return Cow::Borrowed(text) };
    let is_ambiguous = |at: usize| text[scheme_end + "://".len()..at].contains(['/', '?', '#']);
    if text.rfind('@').is_some_and(|at| at > scheme_end && is_ambiguous(at)) {
        return Cow::Owned(redact_password(text));
    }
    let (address, query) = match text.split_once('?') {
        Some((address, query)) => (address, Some(query)),
        None => (text, None),
    };
    let address = redact_path(&redact_password(address));
    Cow::Owned(match query {
        None => address,
        Some(query) => {
            let parameters: Vec<Cow<'_, str>> = query.split('&').map(redact_parameter).collect();
            format!("{address}?{}", parameters.join("&"))
        }
    })
}

fn redact_parameter(parameter: &str) -> Cow<'_, str> {
    match parameter.split_once('=') {
        Some((name, value)) if is_secret_name(name) && !value.is_empty() => {
            Cow::Owned(format!("{name}={PLACEHOLDER}"))
        }
        _ => Cow::Borrowed(parameter),
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    const PARTS: [&str; 7] = ["pass", "key", "token", "secret", "auth", "credential", "signature"];
    name == "sig" || PARTS.iter().any(|part| name.contains(part))
}

/// The path of an HTTP URL may have an API key. That of a database is a name.
fn redact_path(address: &str) -> String {
    let Some(at) = address.find("http://").or_else(|| address.find("https://")) else {
        return address.to_owned();
    };
    let (before, url) = address.split_at(at);
    let segments = url.split('/').map(|part| if is_key(part) { PLACEHOLDER } else { part });
    format!("{before}{}", segments.collect::<Vec<_>>().join("/"))
}

fn is_key_in_path(after_scheme: &str) -> bool {
    after_scheme.split('/').skip(1).any(is_key)
}

/// Long, without separators, and with a digit: a key rather than a word.
fn is_key(segment: &str) -> bool {
    const SHORTEST: usize = 20;
    segment.len() >= SHORTEST
        && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        && segment.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_urls_are_replaced() {
        for (text, shown) in [
            ("no url", "no url"),
            ("sqlite:///var/lib/x.db", "sqlite:///var/lib/x.db"),
            ("postgres://u:hidden@h/d?host=%2Ftmp", "postgres://u:***@h/d?host=%2Ftmp"),
            ("postgres:///d?password=hidden&user=u", "postgres:///d?password=***&user=u"),
            ("a::b=c@http://u:hidden@h:1/x", "a::b=c@http://u:***@h:1/x"),
            ("https://h/gas?apiKey=hidden&module=gas", "https://h/gas?apiKey=***&module=gas"),
            ("https://hidden@h/gas?sig=hidden&auth=hidden", "https://***@h/gas?sig=***&auth=***"),
            ("postgres://user@h/d", "postgres://user@h/d"),
            ("https://h/v3/0hiddenhiddenhiddenhidden", "https://h/v3/***"),
            ("http://u:a?hidden@h/x", "http://***"),
        ] {
            assert_eq!(redact_secrets(text), shown);
        }
    }

    #[test]
    fn redacting_again_changes_nothing() {
        for text in ["http://u:a@h/x?key=b", "postgres://u:a@h/d", "a::b=http://u:c@h"] {
            let once = redact_secrets(text).into_owned();
            assert_eq!(redact_secrets(&once), once);
        }
    }

    #[test]
    fn texts_that_may_hold_secrets_are_recognized() {
        for text in ["http://u:p@h", "x=http://h?token=x", "host=h password=x", &"0a".repeat(16)] {
            assert!(may_hold_secret(text), "{text}");
        }
        for text in ["ftp://x", "a::b=http://h:1/x", "soon", "500ms", "", "127.0.0.1:1", "a=b"] {
            assert!(!may_hold_secret(text), "{text}");
        }
    }
}
