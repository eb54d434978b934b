use std::time::SystemTime;

use humantime::parse_rfc3339;
use serde_json::Value;

use crate::commands::operator::{print_wrapped, rough};

/// A field as a text; empty if it is missing or null.
pub(in crate::commands) fn field(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The state of a batch, in words.
pub(in crate::commands) fn state_text(batch: &Value) -> String {
    field(batch, "state").replace('_', " ")
}

/// How long ago the time in a field was, in one unit; empty if there is none.
pub(in crate::commands) fn age(value: &Value, name: &str) -> String {
    let time = value[name].as_str().and_then(|text| parse_rfc3339(text).ok());
    let ago = |time| SystemTime::now().duration_since(time).unwrap_or_default();
    time.map(|time| rough(ago(time))).unwrap_or_default()
}

/// The time until that in a field, such as `in 15 s`, or that it has passed.
pub(in crate::commands) fn time_until(value: &Value, name: &str) -> String {
    let time = value[name].as_str().and_then(|text| parse_rfc3339(text).ok());
    let left = time.and_then(|time| time.duration_since(SystemTime::now()).ok());
    left.map_or_else(|| "now".to_owned(), |left| format!("in {}", rough(left)))
}

/// Prints a value below others with its name, if there is one.
pub(in crate::commands) fn print_line(label: &str, value: &str) {
    if !value.is_empty() {
        print_wrapped(&format!("{label:<10} "), value);
    }
}

/// Prints the time in a field, and how long ago that was, if there is one.
pub(in crate::commands) fn print_time(label: &str, value: &Value, name: &str) {
    let at = field(value, name);
    if !at.is_empty() {
        print_line(label, &format!("{at} ({} ago)", age(value, name)));
    }
}
