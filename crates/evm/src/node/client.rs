use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use alloy_primitives::{Bytes, hex};
use grid_batch_http::{HttpRequests, HttpResponse};
use grid_batch_support::one_line;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{error::NodeError, refusal::Refusal};

pub(super) const HEADERS: &[(&str, &str)] = &[("content-type", "application/json")];
/// The error code for too many requests. Besu uses it for most refusals, so the words of the message are checked first.
const LIMIT_EXCEEDED: i64 = -32_005;

/// A client of one node. Each request is one POST.
#[derive(Debug)]
pub(crate) struct NodeClient {
    pub(super) http: Arc<dyn HttpRequests>,
    pub(super) url: String,
    /// The id of the last request.
    pub(super) last_id: AtomicU64,
}

impl NodeClient {
    pub(crate) fn new(http: Arc<dyn HttpRequests>, url: impl Into<String>) -> Self {
        Self { http, url: url.into(), last_id: AtomicU64::new(0) }
    }

    /// Another client of the same node, with the same connections.
    pub(crate) fn duplicate(&self) -> Self {
        Self::new(Arc::clone(&self.http), self.url.clone())
    }

    /// The URL of the node.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Calls a method of the node.
    pub(super) async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<T, NodeError> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let response = self.http.post(&self.url, HEADERS, request.to_string().into()).await?;
        read_typed(method, result_of(id, &response)?)
    }
}

/// Converts the result of this method to its type.
pub(super) fn read_typed<T: DeserializeOwned>(method: &str, result: Value) -> Result<T, NodeError> {
    serde_json::from_value(result).map_err(|error| {
        NodeError::InvalidResponse(format!("{method}: {}", one_line(error.to_string())))
    })
}

/// The result in the response to the request with this id.
pub(super) fn result_of(id: u64, response: &HttpResponse) -> Result<Value, NodeError> {
    let status = response.status;
    if matches!(status, 429 | 503) {
        return Err(busy(response, response.text()));
    }
    let body = response.body.as_ref().map_err(|error| NodeError::from(error.clone()))?;
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    // A node that cannot parse a request answers without an id.
    let has_our_id = json["id"] == id || json["id"].is_null();
    if let Some(error) = json.get("error").filter(|error| has_our_id && !error.is_null()) {
        return Err(rpc_error(response, error));
    }
    if !(200..300).contains(&status) {
        return Err(NodeError::Status { status, text: response.text() });
    }
    if json["id"] != id {
        let text = format!("expected JSON with the id {id}: {}", response.text());
        return Err(NodeError::InvalidResponse(text));
    }
    result_in(json, response)
}

/// The result in the answer to a call, which is part of this response.
pub(super) fn result_in(mut answer: Value, response: &HttpResponse) -> Result<Value, NodeError> {
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        return Err(rpc_error(response, error));
    }
    answer.get_mut("result").map(Value::take).ok_or_else(|| {
        NodeError::InvalidResponse("it has neither a result nor an error".to_owned())
    })
}

fn rpc_error(response: &HttpResponse, error: &Value) -> NodeError {
    let code = error["code"].as_i64().unwrap_or_default();
    let message = error["message"].as_str().map_or_else(|| one_line(error.to_string()), one_line);
    let refusal = Refusal::from_message(&message);
    match (code, refusal) {
        (LIMIT_EXCEEDED, Refusal::Unrecognized | Refusal::NodeBusy) => busy(response, message),
        _ => NodeError::Rpc { code, message, data: error_data(&error["data"]) },
    }
}

/// The bytes that come with an error. Nodes wrap them in several ways.
fn error_data(value: &Value) -> Option<Bytes> {
    match value {
        Value::Object(fields) => error_data(fields.get("data")?),
        Value::String(text) => {
            let (_, digits) = text.split_once("0x")?;
            hex::decode(digits).ok().map(Bytes::from)
        }
        _ => None,
    }
}

fn busy(response: &HttpResponse, text: String) -> NodeError {
    NodeError::Busy { status: response.status, retry_after: response.retry_after, text }
}
