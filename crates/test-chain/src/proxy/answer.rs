use serde_json::{Value, json};

/// This result, as the answer to a call.
pub(super) fn result(call: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
}

/// A refusal, as the answer to a call.
pub(super) fn refusal(call: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": message}})
}
