use std::time::Duration;

use serde_json::{Value, json};
use ureq::Agent;

use crate::ChainError;

/// A client of a node. Its methods block until the node has responded.
#[derive(Debug)]
pub struct Endpoint {
    url: String,
    agent: Agent,
}

impl Endpoint {
    /// Longer than any response takes on a busy machine.
    const TIMEOUT: Duration = Duration::from_secs(60);

    /// A client of the node at this URL.
    pub fn new(url: String) -> Self {
        let agent = Agent::config_builder()
            .timeout_global(Some(Self::TIMEOUT))
            .http_status_as_error(false)
            // A kept connection would break when the node restarts.
            .max_idle_connections(0)
            .build()
            .into();
        Self { url, agent }
    }

    /// The URL of the node.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The body of the node's response to this request.
    pub fn post(&self, request: &[u8]) -> Result<Vec<u8>, ureq::Error> {
        let post = self.agent.post(&self.url).header("content-type", "application/json");
        post.send(request)?.body_mut().read_to_vec()
    }

    /// The node's response to this call; `None` if the node is unreachable.
    pub fn response(&self, call: &Value) -> Option<Value> {
        let response = self.post(call.to_string().as_bytes()).ok()?;
        serde_json::from_slice(&response).ok()
    }

    /// The result of this call.
    pub fn call(&self, method: &str, params: &Value) -> Result<Value, ChainError> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let response = self.post(request.to_string().as_bytes()).map_err(|error| {
            ChainError::NoResponse { method: method.to_owned(), source: error.into() }
        })?;
        result_of(method, &response)
    }
}

fn result_of(method: &str, response: &[u8]) -> Result<Value, ChainError> {
    let mut json: Value =
        serde_json::from_slice(response).map_err(|_| ChainError::InvalidResponse {
            what: "a response",
            expected: "JSON",
            value: String::from_utf8_lossy(response).into(),
        })?;
    let Some(error) = json.get_mut("error").filter(|error| !error.is_null()) else {
        return Ok(json["result"].take());
    };
    Err(ChainError::Refused {
        method: method.to_owned(),
        code: error["code"].as_i64().unwrap_or_default(),
        message: error["message"].as_str().unwrap_or_default().to_owned(),
        data: error.get_mut("data").map(Value::take),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_keeps_the_nodes_message() {
        let response =
            br#"{"error":{"code":3,"message":"execution reverted","data":"0x08c379a0"}}"#;
        let error = result_of("eth_call", response).unwrap_err();
        assert_eq!(error.to_string(), "the node refused eth_call: execution reverted (3)");
        assert!(
            matches!(error, ChainError::Refused { data: Some(data), .. } if data == "0x08c379a0")
        );
    }

    #[test]
    fn result_can_be_null() {
        assert_eq!(result_of("m", br#"{"result":null}"#).unwrap(), Value::Null);
    }

    #[test]
    fn response_that_is_not_json_is_shown() {
        let error = result_of("m", b"<html>").unwrap_err();
        assert!(error.to_string().contains("<html>"), "{error}");
    }
}
