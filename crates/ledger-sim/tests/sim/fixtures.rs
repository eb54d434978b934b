//! Responses of real ledgers in `tests/fixtures`, with `{NAMES}` for variable parts.

use std::{fs, path::Path};

use crate::client::Response;

/// Compares a response with a fixture: the status line, the headers except for date and length, and
/// the body.
pub fn check(fixture: &str, response: &Response, values: &[(&str, &str)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
    let mut text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    for (name, value) in values {
        text = text.replace(&format!("{{{name}}}"), value);
    }
    let (head, body) = text.split_once("\n\n").expect("a fixture has a head and a body");
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some(&*response.status_line), "{fixture}");
    assert_eq!(
        sorted(lines),
        sorted(header_lines(response).iter().map(|line| &**line)),
        "{fixture}"
    );
    assert_eq!(response.text(), body.trim_end_matches('\n'), "{fixture}");
}

fn header_lines(response: &Response) -> Vec<String> {
    let is_compared = |name: &str| {
        !name.eq_ignore_ascii_case("date") && !name.eq_ignore_ascii_case("content-length")
    };
    response
        .headers
        .iter()
        .filter(|(name, _)| is_compared(name))
        .map(|(name, value)| format!("{name}: {value}"))
        .collect()
}

fn sorted<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut lines: Vec<_> = lines.collect();
    lines.sort_unstable();
    lines
}
