use std::time::Duration;

use serde_json::{Value, json};
use ureq::Agent;

use crate::ChainError;

/// A node, as its callers see it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    url: String,
    agent: Agent,
}

impl Endpoint {
    /// Longer than any answer takes on the busiest machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    pub(crate) fn new(url: String) -> Self {
        let agent = Agent::config_builder()
            .timeout_global(Some(Self::PATIENCE))
            .http_status_as_error(false)
            // A connection that is kept does not outlive the node's restart.
            .max_idle_connections(0)
            .build()
            .into();
        Self { url, agent }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The node's answer to these bytes, as it is.
    pub(crate) fn post(&self, request: &[u8]) -> Result<Vec<u8>, ureq::Error> {
        let post = self.agent.post(&self.url).header("content-type", "application/json");
        post.send(request)?.body_mut().read_to_vec()
    }

    /// The node's answer to this call; none where the node is not there.
    pub(crate) fn answer(&self, call: &Value) -> Option<Value> {
        let answer = self.post(call.to_string().as_bytes()).ok()?;
        serde_json::from_slice(&answer).ok()
    }

    /// The result of one call.
    pub(crate) fn call(&self, method: &str, params: &Value) -> Result<Value, ChainError> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.post(request.to_string().as_bytes()).map_err(|error| {
            ChainError::NoAnswer { method: method.to_owned(), source: error.into() }
        })?;
        result_of(method, &answer)
    }
}

fn result_of(method: &str, answer: &[u8]) -> Result<Value, ChainError> {
    let mut answer: Value = serde_json::from_slice(answer).map_err(|_| ChainError::Answer {
        what: "an answer",
        rule: "JSON",
        value: String::from_utf8_lossy(answer).into(),
    })?;
    let Some(error) = answer.get_mut("error").filter(|error| !error.is_null()) else {
        return Ok(answer["result"].take());
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
    fn an_error_of_the_node_keeps_its_words() {
        let answer = br#"{"error":{"code":3,"message":"execution reverted","data":"0x08c379a0"}}"#;
        let error = result_of("eth_call", answer).unwrap_err();
        assert_eq!(error.to_string(), "the node refused eth_call: execution reverted (3)");
        assert!(
            matches!(error, ChainError::Refused { data: Some(data), .. } if data == "0x08c379a0")
        );
    }

    #[test]
    fn a_result_may_be_null() {
        assert_eq!(result_of("m", br#"{"result":null}"#).unwrap(), Value::Null);
    }

    #[test]
    fn what_is_not_json_is_shown() {
        let error = result_of("m", b"<html>").unwrap_err();
        assert!(error.to_string().contains("<html>"), "{error}");
    }
}
