use std::time::SystemTime;

use humantime::parse_rfc3339;
use serde_json::Value;

use crate::commands::operator::rough;

/// A field as a text; empty if it is missing or null.
pub(in crate::commands) fn field(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// How long ago the time in a field was, in one unit; empty if there is none.
pub(in crate::commands) fn age(value: &Value, name: &str) -> String {
    let time = value[name].as_str().and_then(|text| parse_rfc3339(text).ok());
    let ago = |time| SystemTime::now().duration_since(time).unwrap_or_default();
    time.map(|time| rough(ago(time))).unwrap_or_default()
}
