use std::borrow::Cow;

/// The text without the names and passwords in its URLs: libraries like to repeat the whole URL in
/// their errors.
pub(crate) fn without_userinfo(text: &str) -> Cow<'_, str> {
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

/// Scheme and host of a URL, which tell a person which node is meant: a path may be a secret too.
pub(crate) fn host(url: &str) -> String {
    let clean = without_userinfo(url);
    let start = clean.find("://").map_or(0, |at| at + "://".len());
    let end = start + authority(&clean[start..]).len();
    clean[..end].to_owned()
}

fn authority(address: &str) -> &str {
    let ends = |c: char| matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>') || c.is_whitespace();
    &address[..address.find(ends).unwrap_or(address.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_are_left_out_wherever_a_url_is() {
        for (text, clean) in [
            ("no address", "no address"),
            ("mail a@b about http://h", "mail a@b about http://h"),
            ("http://u:p@h/x@y", "http://h/x@y"),
            ("(http://u:p@q@h:1) or ws://é:p@i?z", "(http://h:1) or ws://i?z"),
            ("http://", "http://"),
        ] {
            assert_eq!(without_userinfo(text), clean);
        }
    }

    #[test]
    fn a_host_is_shown_without_path_or_query() {
        assert_eq!(host("https://u:p@node-1:8008/key?token=x"), "https://node-1:8008");
        assert_eq!(host("node-1/key"), "node-1");
        assert_eq!(host(""), "");
    }
}
