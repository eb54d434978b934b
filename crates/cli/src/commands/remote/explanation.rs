use serde_json::Value;

use super::{entries, field, gas_text};
use crate::commands::{operator::wrapped, printable::printable};

/// Why a batch or a service waits, what ends it, and what can be done, in lines of at most this many characters.
pub(in crate::commands) fn explanation_lines(explanation: &Value, width: usize) -> Vec<String> {
    let mut lines = wrapped("", &field(explanation, "text"), width);
    let mut gas = explanation["gas"].clone();
    if gas.is_object() {
        if explanation["transaction"].is_object() {
            gas["withdrawals_left"] = Value::Null;
        }
        lines.extend(wrapped("Gas: ", &gas_text(&gas), width));
    }
    lines.extend(
        ends(explanation)
            .iter()
            .flat_map(|(cause, ends)| wrapped(&format!("Ends {cause}: "), ends, width)),
    );
    let actions = entries(explanation, "actions");
    if actions.is_empty() {
        return lines;
    }
    lines.extend([String::new(), "Possible:".to_owned()]);
    for action in actions {
        // It is not wrapped, so that it can be copied.
        lines.push(format!("  {}", printable(&command(action))));
        lines.extend(wrapped("      ", &field(action, "text"), width));
    }
    lines
}

/// The command of an action, with the first characters of the id that it is about.
fn command(action: &Value) -> String {
    let command = field(action, "command");
    let ids = ["batch_id", "withdrawal_id", "transaction_id"].map(|name| action[name].as_str());
    match ids.into_iter().flatten().find_map(|id| Some((id, id.get(..12)?))) {
        Some((id, short)) => command.replace(id, short),
        None => command,
    }
}

/// How many open batches of its service are before an explained batch and behind it.
pub(in crate::commands) fn position(explanation: &Value) -> (u64, u64) {
    let ahead = explanation["position"]["ahead"].as_u64().unwrap_or_default();
    let open = explanation["service"]["open"].as_u64().unwrap_or_default();
    (ahead, open.saturating_sub(ahead + 1))
}

/// The causes of the waits of a batch, or of a service and its oldest batch, and what ends each.
fn ends(explanation: &Value) -> Vec<(&str, &str)> {
    let waits = [&explanation["wait"], &explanation["oldest"]["wait"]];
    let also = [&explanation["wait"]["also"], &explanation["service"]["waits"]];
    let also = also.into_iter().filter_map(Value::as_array).flatten();
    let mut ends = Vec::new();
    for wait in waits.into_iter().chain(also) {
        if let (Some(cause), Some(end)) = (wait["cause"].as_str(), wait["ends"].as_str())
            && !ends.contains(&(cause, end))
        {
            ends.push((cause, end));
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn explanation_tells_what_ends_each_wait() {
        let lease = json!({"cause": "lease", "ends": "an instance that claims the service, or renews its lease"});
        let behind =
            json!({"cause": "behind", "ends": "the end of the batches before it", "also": [lease]});
        let service = json!({"waits": [lease]});
        let of_batch = json!({"text": "It waits.", "wait": behind, "service": service});
        let expected = [
            "It waits.",
            "Ends behind: the end of the batches before it",
            "Ends lease: an instance that claims the service, or renews its lease",
        ];
        assert_eq!(explanation_lines(&of_batch, 80), expected);
        let of_service =
            json!({"text": "It waits.", "oldest": {"wait": behind}, "service": service});
        assert_eq!(explanation_lines(&of_service, 80), expected);
        let lines = explanation_lines(&of_batch, 40);
        assert_eq!(lines.len(), 5, "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 40), "{lines:#?}");
    }
}
