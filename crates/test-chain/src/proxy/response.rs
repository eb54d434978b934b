use serde_json::{Value, json};

/// The response to a call with this result.
pub(super) fn result_response(call: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
}

/// The response to a call with this error.
pub(super) fn error_response(call: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": message}})
}
