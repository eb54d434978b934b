use grid_batch_core::batches::TraceContext;
use grid_batch_core::events::{BatchEvent, EventWithdrawal};
use grid_batch_core::webhooks::Message;
use serde_json::{Value, json};

/// The message for an event, in the format of Standard Webhooks.
pub(crate) fn message(event: &BatchEvent) -> Message {
    let at = event.at.rfc3339_micros();
    let mut body = json!({
        "type": format!("batch.{}", event.kind),
        "timestamp": at,
        "data": {
            "id": event.id.to_string(),
            "at": at,
            "service_id": event.service_id.as_str(),
            "batch_id": event.batch_id.to_string(),
            "kind": event.kind.as_str(),
            "state": event.state.as_str(),
            "attempt": event.attempt,
            "detail": event.detail,
            "instance": event.instance,
        },
    });
    if let Some(EventWithdrawal { id, is_call, pool, amount, transaction_hash }) = &event.withdrawal
    {
        let (name, of, how_much) = if *is_call {
            ("transaction", "to", "value")
        } else {
            ("withdrawal", "pool", "amount")
        };
        body["data"][name] = json!({
            "id": id, of: Some(pool).filter(|pool| !pool.is_empty()), how_much: amount,
            "transaction_hash": transaction_hash,
        });
    }
    if let Some(trace) = &event.trace {
        body["data"]["traceparent"] = json!(trace.traceparent());
    }
    Message { id: message_id(event), body: body.to_string() }
}

/// The trace of a message that was given up, without its state.
pub(crate) fn trace_of(message: &Message) -> Option<TraceContext> {
    let body: Value = serde_json::from_str(&message.body).ok()?;
    TraceContext::from_headers(body["data"]["traceparent"].as_str()?, [])
}

/// The id includes the time, because a restored database assigns the ids of lost events to other events.
fn message_id(event: &BatchEvent) -> String {
    format!("evt_{}-{}", event.id, event.at.as_micros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use grid_batch_core::batches::BatchState;
    use grid_batch_core::events::{EventId, EventKind};
    use grid_batch_core::{ItemId, Timestamp};

    fn event(group: i64, at: i64) -> BatchEvent {
        BatchEvent {
            id: EventId { group, position: 2 },
            service_id: "a::b".parse().unwrap(),
            batch_id: ItemId::from_bytes([7; 64]),
            kind: EventKind::Accepted,
            state: BatchState::New,
            attempt: 0,
            detail: None,
            at: Timestamp::from_micros(at),
            instance: None,
            withdrawal: None,
            trace: None,
        }
    }

    #[test]
    fn message_has_the_event_as_data() {
        let message = message(&event(1, 1_600_000_000_000_001));
        assert_eq!(message.id, "evt_1-2-1600000000000001");
        let body: Value = serde_json::from_str(&message.body).unwrap();
        assert_eq!(body["type"], "batch.accepted");
        assert_eq!(body["timestamp"], "2020-09-13T12:26:40.000001Z");
        assert_eq!((&body["data"]["id"], &body["data"]["state"]), (&json!("1-2"), &json!("new")));
        assert_eq!(body["data"]["batch_id"], ItemId::from_bytes([7; 64]).to_string());
    }

    #[test]
    fn message_names_the_trace_of_the_batch() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = Some(format!("{parent} a=1").parse().unwrap());
        let with_trace = message(&BatchEvent { trace, ..event(1, 1) });
        let body: Value = serde_json::from_str(&with_trace.body).unwrap();
        assert_eq!(body["data"]["traceparent"], parent);
        assert_eq!(trace_of(&with_trace), Some(parent.parse().unwrap()));
        let without = message(&event(1, 1));
        assert!(!without.body.contains("traceparent"));
        assert_eq!(trace_of(&without), None);
    }

    #[test]
    fn message_of_a_withdrawal_names_it() {
        assert!(!message(&event(1, 1)).body.contains("withdrawal"));
        let withdrawal = EventWithdrawal {
            id: "5a".repeat(16),
            is_call: false,
            pool: "0xaa".to_owned(),
            amount: "7".to_owned(),
            transaction_hash: None,
        };
        let body = message(&BatchEvent { withdrawal: Some(withdrawal), ..event(1, 1) }).body;
        let body: Value = serde_json::from_str(&body).unwrap();
        let expected =
            json!({"id": "5a".repeat(16), "pool": "0xaa", "amount": "7", "transaction_hash": null});
        assert_eq!(body["data"]["withdrawal"], expected);
    }

    #[test]
    fn message_of_a_call_names_the_transaction() {
        let call = EventWithdrawal {
            id: "5a".repeat(16),
            is_call: true,
            pool: "0xaa".to_owned(),
            amount: "7".to_owned(),
            transaction_hash: None,
        };
        let body = message(&BatchEvent { withdrawal: Some(call), ..event(1, 1) }).body;
        let body: Value = serde_json::from_str(&body).unwrap();
        let expected =
            json!({"id": "5a".repeat(16), "to": "0xaa", "value": "7", "transaction_hash": null});
        assert_eq!(body["data"]["transaction"], expected);
        assert_eq!(body["data"]["withdrawal"], Value::Null);
    }

    #[test]
    fn number_that_is_used_again_makes_another_message_id() {
        assert_ne!(message(&event(1, 5)).id, message(&event(1, 6)).id);
        assert_eq!(message(&event(1, 5)).id, message(&event(1, 5)).id);
    }
}
