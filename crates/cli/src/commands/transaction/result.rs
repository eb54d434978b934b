//! What the chain shows about a transaction that is final.

use serde_json::Value;

use crate::commands::remote::{entries, field, print_line};

/// Prints the result; nothing if there is none yet.
pub(super) fn print_result(result: &Value) {
    if !result.is_object() {
        return;
    }
    print_line("final as", &mined_text(result));
    print_line("contract", &field(result, "contract"));
    for event in entries(result, "events") {
        print_line("event", &event_text(event));
    }
}

fn mined_text(result: &Value) -> String {
    let (hash, block) = (field(result, "hash"), field(result, "block"));
    let (gas, price) = (field(result, "gas_used"), field(result, "gas_price_gwei"));
    let mut text = format!("{hash} in block {block}");
    // A node may have removed the receipt of an old transaction.
    if !gas.is_empty() {
        text.push_str(&format!(", {gas} gas"));
    }
    if !price.is_empty() {
        text.push_str(&format!(" at {price} gwei"));
    }
    text
}

/// An event with its values, or with its first topic if none of the declarations is its own.
fn event_text(event: &Value) -> String {
    let address = field(event, "address");
    let name = field(event, "name");
    if name.is_empty() {
        let topic = entries(event, "topics").first().and_then(Value::as_str);
        return format!("{} of {address}", topic.unwrap_or("without a topic"));
    }
    let values = event["values"].as_object().into_iter().flatten();
    let values = values.map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name}: {text}"),
        None => format!("{name}: {value}"),
    });
    format!("{name}({}) of {address}", values.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_shown_with_their_values() {
        let event = json!({
            "address": "0xa", "topics": ["0xddf2"], "data": "0x",
            "name": "Transfer", "values": {"to": "0xb", "value": "5"},
        });
        assert_eq!(event_text(&event), "Transfer(to: 0xb, value: 5) of 0xa");
        let unknown = json!({"address": "0xa", "topics": ["0xddf2"], "data": "0x"});
        assert_eq!(event_text(&unknown), "0xddf2 of 0xa");
        let anonymous = json!({"address": "0xa", "topics": [], "data": "0x"});
        assert_eq!(event_text(&anonymous), "without a topic of 0xa");
    }

    #[test]
    fn final_transaction_is_shown_with_its_cost() {
        let result = json!({"hash": "0xa", "block": 7, "gas_used": 21000, "gas_price_gwei": "1.5"});
        assert_eq!(mined_text(&result), "0xa in block 7, 21000 gas at 1.5 gwei");
        assert_eq!(mined_text(&json!({"hash": "0xa", "block": 7})), "0xa in block 7");
    }
}
