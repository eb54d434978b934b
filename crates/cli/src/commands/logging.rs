//! The format of the log.

use std::io::Write;

use env_logger::{Builder, fmt::Formatter};
use log::{
    Record,
    kv::{Error, Key, Value, VisitSource},
};

/// Logs the records that pass `filter` to standard error, one per line.
pub(crate) fn start(filter: &str) {
    Builder::new().parse_filters(filter).format(format_record).init();
}

fn format_record(out: &mut Formatter, record: &Record<'_>) -> std::io::Result<()> {
    let mut pairs = FormattedPairs(String::new());
    // The visitor never fails.
    let _ = record.key_values().visit(&mut pairs);
    let time = out.timestamp_millis();
    writeln!(out, "{time} {:<5} {}: {}{}", record.level(), record.target(), record.args(), pairs.0)
}

/// ` key=value` for each pair.
struct FormattedPairs(String);

impl<'kvs> VisitSource<'kvs> for FormattedPairs {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        let text = value.to_string();
        let is_plain = !text.is_empty()
            && !text.contains(|c: char| c.is_whitespace() || c == '"' || c.is_control());
        if is_plain {
            self.0.push_str(&format!(" {key}={text}"));
        } else {
            self.0.push_str(&format!(" {key}={text:?}"));
        }
        Ok(())
    }
}
