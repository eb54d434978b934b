use serde_json::Value;

use super::gas_text;
use crate::commands::operator::wrapped;

/// Why a batch or a service waits, and what can be done, in lines of at most so many characters.
pub(in crate::commands) fn explanation_lines(explanation: &Value, width: usize) -> Vec<String> {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let mut lines = wrapped("", &text(explanation, "text"), width);
    if explanation["gas"].is_object() {
        lines.extend(wrapped("Gas: ", &gas_text(&explanation["gas"]), width));
    }
    let actions = explanation["actions"].as_array().map_or(&[][..], Vec::as_slice);
    if actions.is_empty() {
        return lines;
    }
    lines.extend([String::new(), "Possible:".to_owned()]);
    for action in actions {
        let id = text(action, "batch_id");
        let of_batch = id.get(..12).map(|id| format!(" {id}")).unwrap_or_default();
        let verb = text(action, "verb");
        lines.extend(wrapped(&format!("  {verb}{of_batch}: "), &text(action, "text"), width));
    }
    lines
}
