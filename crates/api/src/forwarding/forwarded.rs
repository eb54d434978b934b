//! `Forwarded` (RFC 7239).

use axum::http::{HeaderMap, header::FORWARDED};

use super::{Told, parse_address, parse_host, parse_scheme};

pub(super) fn read(headers: &HeaderMap) -> Told {
    let mut told = Told::default();
    for value in headers.get_all(FORWARDED) {
        for element in split(value.to_str().unwrap_or("?"), ',') {
            let pairs: Vec<(String, String)> =
                split(element, ';').into_iter().filter_map(parse_pair).collect();
            let get = |name: &str| pairs.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
            told.addresses.push(get("for").and_then(parse_address));
            told.is_encrypted = get("proto").and_then(parse_scheme);
            told.host = get("host").and_then(parse_host);
        }
    }
    told
}

/// The name in lower case, and the value without its quotes.
fn parse_pair(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let value = value.trim();
    let value = match value.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"')?.replace('\\', ""),
        None => value.to_owned(),
    };
    Some((name.trim().to_ascii_lowercase(), value))
}

/// The parts between separators that are not in quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            c if c == separator && !is_quoted => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_in_quotes_do_not_separate() {
        assert_eq!(split(r#"a="x,y",b"#, ','), [r#"a="x,y""#, "b"]);
        assert_eq!(split(r#"a="x\",y",b"#, ','), [r#"a="x\",y""#, "b"]);
        assert_eq!(split("", ','), [""]);
        assert_eq!(split(r#"a="x,b"#, ','), [r#"a="x,b"#]);
    }
}
