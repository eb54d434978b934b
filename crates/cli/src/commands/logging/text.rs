//! Lines for people: time, level, target, message and ` key=value` for each pair.

use std::{fmt::Write as _, io::Write, time::SystemTime};

use env_logger::fmt::Formatter;
use humantime::format_rfc3339_millis;
use log::{
    Record,
    kv::{Error, Key, Value, VisitSource},
};

pub(super) fn write(out: &mut Formatter, record: &Record<'_>) -> std::io::Result<()> {
    let time = format_rfc3339_millis(SystemTime::now());
    let (level, target) = (record.level(), record.target());
    writeln!(out, "{time} {level:<5} {target}: {}", message_and_pairs(record))
}

fn message_and_pairs(record: &Record<'_>) -> String {
    let mut line = FormattedLine(one_line(&record.args().to_string()));
    // The visitor never fails.
    let _ = record.key_values().visit(&mut line);
    line.0
}

struct FormattedLine(String);

impl<'kvs> VisitSource<'kvs> for FormattedLine {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        let text = value.to_string();
        let key = one_line(key.as_str());
        if is_plain(&text) {
            write!(self.0, " {key}={text}")?;
        } else {
            write!(self.0, " {key}={text:?}")?;
        }
        Ok(())
    }
}

/// Whether a value is unmistakable without quotes.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '"' || is_escaped(c))
}

/// A text as one line: what could end the line or change how it is shown is escaped.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars() {
        if is_escaped(c) { line.extend(c.escape_debug()) } else { line.push(c) }
    }
    line
}

/// Characters that are not printed as themselves, such as those that turn the direction of the text.
pub(super) fn is_escaped(c: char) -> bool {
    !matches!(c, '"' | '\'' | '\\') && c.escape_debug().len() > 1
}

#[cfg(test)]
mod tests {
    use log::Level;

    use super::*;

    fn formatted(message: &str, pairs: &[(&str, &str)]) -> String {
        let args = format_args!("{message}");
        let record = Record::builder().level(Level::Warn).args(args).key_values(&pairs).build();
        message_and_pairs(&record)
    }

    #[test]
    fn pairs_follow_the_message() {
        let pairs = [("service", "a::b"), ("error", "two words"), ("path", "a\\b"), ("none", "")];
        assert_eq!(
            formatted("it failed", &pairs),
            r#"it failed service=a::b error="two words" path=a\b none="""#
        );
    }

    #[test]
    fn nothing_from_outside_makes_a_second_line() {
        for text in ["a\nERROR forged", "a\r\u{1b}[2K", "a\u{2028}b", "a\u{202e}b", "a\0\u{85}"] {
            let line = formatted(text, &[("error", text)]);
            let is_safe = |c: char| !c.is_control() && !"\u{2028}\u{202e}".contains(c);
            assert!(line.chars().all(is_safe), "{line:?}");
        }
        assert_eq!(formatted("a\nb", &[("e", "c\nd")]), r#"a\nb e="c\nd""#);
    }
}
