use std::time::SystemTime;

use humantime::parse_rfc3339;
use serde_json::Value;

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
    let Some(time) = time else { return String::new() };
    let seconds = SystemTime::now().duration_since(time).unwrap_or_default().as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
