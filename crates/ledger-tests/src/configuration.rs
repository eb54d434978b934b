//! The configuration file of a server.

use std::time::Duration;

use toml::{Table, Value};

/// `ledger.late_arrival_limit` of the servers, which facts may depend on.
pub const LATE_ARRIVAL_LIMIT: Duration = Duration::from_secs(2);

/// Settings for a ledger that is much faster than a real one and is tested by killing the server.
const FAST: &str = r#"
listen = "127.0.0.1:0"
[access]
mode = "none"
[ledger]
request_timeout = "1s"
late_arrival_limit = "2s"
[claims]
idle_expiry = "3s"
full_expiry = "9s"
[poll]
interval = "50ms"
requests_per_second = 1000
hold_after = "2s"
[testing]
connect_timeout = "500ms"
queue_poll_interval = "200ms"
first_delay = "20ms"
longest_delay = "150ms"
sending_limit = "1200ms"
total_limit = "2s"
drain_limit = "2s"
longest_interval = "500ms"
quiet_after = "500ms"
accept_absence_after = "1500ms"
"#;

/// The text of a file with these settings. The settings of each text replace those of the texts before it.
pub(crate) fn text(database: &str, texts: &[&str]) -> String {
    let mut file: Table = FAST.parse().unwrap();
    file.insert("database".to_owned(), Value::String(database.to_owned()));
    for text in texts {
        let settings = text.parse::<Table>();
        let settings = settings.unwrap_or_else(|error| panic!("this is not TOML: {error}\n{text}"));
        replace(&mut file, settings);
    }
    file.to_string()
}

/// Replaces settings, and keeps the other settings of their tables.
fn replace(settings: &mut Table, by: Table) {
    for (name, value) in by {
        match (settings.get_mut(&name), value) {
            (Some(Value::Table(present)), Value::Table(value)) => replace(present, value),
            (_, value) => {
                settings.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_replaces_single_settings() {
        let text = text("sqlite://a", &["[ledger]\nkind = \"mine\"\nrequest_timeout = \"7s\""]);
        let file: Table = text.parse().unwrap();
        assert_eq!(file["database"].as_str(), Some("sqlite://a"));
        assert_eq!(file["ledger"]["request_timeout"].as_str(), Some("7s"));
        assert_eq!(file["ledger"]["late_arrival_limit"].as_str(), Some("2s"));
        assert_eq!(file["ledger"]["kind"].as_str(), Some("mine"));
    }
}
