use std::time::{Duration, SystemTime};

use humantime::parse_rfc3339;
use serde_json::Value;

use crate::commands::{
    operator::{print_wrapped, rough},
    print::print_stdout,
};

/// A field as a text; empty if it is missing or null.
pub(in crate::commands) fn field(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The fields that are not empty, with this between them.
pub(in crate::commands) fn joined(value: &Value, names: &[&str], between: &str) -> String {
    let texts = names.iter().map(|name| field(value, name)).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join(between)
}

/// The state of a batch, in words.
pub(in crate::commands) fn state_text(batch: &Value) -> String {
    field(batch, "state").replace('_', " ")
}

/// The entries of the list in a field; none if it is missing.
pub(in crate::commands) fn entries<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[][..], Vec::as_slice)
}

/// What an action has changed: the state before and after it.
pub(in crate::commands) fn change(done: &Value) -> String {
    let changed = &done["changed"];
    format!("{} -> {}", field(changed, "from"), field(changed, "to"))
}

/// The time in a field, if there is one.
pub(in crate::commands) fn time(value: &Value, name: &str) -> Option<SystemTime> {
    parse_rfc3339(value[name].as_str()?).ok()
}

/// How long ago the time in a field was, by the clock of this machine; `None` if there is none.
pub(in crate::commands) fn elapsed(value: &Value, name: &str) -> Option<Duration> {
    time(value, name).map(|time| time.elapsed().unwrap_or_default())
}

/// How long ago the time in a field was, in one unit; empty if there is none.
pub(in crate::commands) fn age(value: &Value, name: &str) -> String {
    elapsed(value, name).map(rough).unwrap_or_default()
}

/// The time until that in a field, such as `in 15 s`, or that it has passed.
pub(in crate::commands) fn time_until(value: &Value, name: &str) -> String {
    let left = time(value, name).and_then(|time| time.duration_since(SystemTime::now()).ok());
    left.map_or_else(|| "now".to_owned(), |left| format!("in {}", rough(left)))
}

/// Prints a value below others with its name, if there is one.
pub(in crate::commands) fn print_line(label: &str, value: &str) {
    if !value.is_empty() {
        print_wrapped(&format!("{label:<10} "), value);
    }
}

/// Prints each of several entries, with an empty line between them.
pub(in crate::commands) fn print_each(entries: &[Value], print: impl Fn(&Value)) {
    for (number, entry) in entries.iter().enumerate() {
        if number > 0 {
            print_stdout("");
        }
        print(entry);
    }
}

/// Prints the time in a field, and how long ago that was, if there is one.
pub(in crate::commands) fn print_time(label: &str, value: &Value, name: &str) {
    let at = field(value, name);
    if !at.is_empty() {
        print_line(label, &format!("{at} ({} ago)", age(value, name)));
    }
}
