//! An independent JSON-RPC client.

use serde_json::{Value, json};

/// What a client receives.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    Result(Value),
    Error(i64, String),
    Status { code: u16, retry_after: Option<String> },
    Nothing,
}

pub fn call(url: &str, method: &str, params: Value) -> Received {
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let response = post(url, &request.to_string());
    let Ok(response) = response else { return response.unwrap_err() };
    assert_eq!(response["id"], 7, "{response}");
    match response.get("error") {
        None => Received::Result(response["result"].clone()),
        Some(error) => {
            let message = error["message"].as_str().unwrap().to_owned();
            Received::Error(error["code"].as_i64().unwrap(), message)
        }
    }
}

pub fn post(url: &str, request: &str) -> Result<Value, Received> {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut response = agent.post(url).send(request).map_err(|_| Received::Nothing)?;
    if response.status() != 200 {
        let after = response.headers().get("retry-after");
        let retry_after = after.map(|it| it.to_str().unwrap().to_owned());
        return Err(Received::Status { code: response.status().as_u16(), retry_after });
    }
    Ok(serde_json::from_slice(&response.body_mut().read_to_vec().unwrap()).unwrap())
}
