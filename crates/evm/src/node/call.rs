use std::sync::atomic::Ordering;

use alloy_primitives::{Bytes, hex};
use grid_batch_http::{HttpResponse, one_line};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::node::{Node, NodeError};

const HEADERS: &[(&str, &str)] = &[("content-type", "application/json")];
const LIMIT_EXCEEDED: i64 = -32_005;

impl Node {
    /// Asks one question.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<T, NodeError> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let question = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answer = self.http.post(&self.url, HEADERS, question.to_string()).await?;
        let result = read(id, &answer)?;
        serde_json::from_value(result).map_err(|error| {
            NodeError::Answer(format!("{method}: {}", one_line(error.to_string())))
        })
    }
}

/// What an answer says to the question of this id.
fn read(id: u64, answer: &HttpResponse) -> Result<Value, NodeError> {
    let status = answer.status;
    if matches!(status, 429 | 503) {
        return Err(busy(answer, answer.text()));
    }
    let body = answer.body.as_ref().map_err(|error| NodeError::from(error.clone()))?;
    let mut said: Value = serde_json::from_slice(body).unwrap_or_default();
    // What a node could not read it answers without an id.
    let is_ours = said["id"] == id || said["id"].is_null();
    if let Some(error) = said.get("error").filter(|error| is_ours && !error.is_null()) {
        return Err(refused(answer, error));
    }
    if !(200..300).contains(&status) {
        return Err(NodeError::Status { status, text: answer.text() });
    }
    if said["id"] != id {
        let text = format!("it is to be JSON with the id {id}: {}", answer.text());
        return Err(NodeError::Answer(text));
    }
    let result = said.get_mut("result").map(Value::take);
    result.ok_or_else(|| NodeError::Answer("it has neither a result nor an error".to_owned()))
}

fn refused(answer: &HttpResponse, error: &Value) -> NodeError {
    let code = error["code"].as_i64().unwrap_or_default();
    let message = error["message"].as_str().map_or_else(|| one_line(error.to_string()), one_line);
    match code {
        LIMIT_EXCEEDED => busy(answer, message),
        _ => NodeError::Rpc { code, message, data: data(&error["data"]) },
    }
}

/// Bytes that come with an error. Nodes wrap them up in several ways.
fn data(value: &Value) -> Option<Bytes> {
    match value {
        Value::Object(fields) => data(fields.get("data")?),
        Value::String(text) => {
            let (_, digits) = text.split_once("0x")?;
            hex::decode(digits).ok().map(Bytes::from)
        }
        _ => None,
    }
}

fn busy(answer: &HttpResponse, text: String) -> NodeError {
    NodeError::Busy { status: answer.status, retry_after: answer.retry_after, text }
}
