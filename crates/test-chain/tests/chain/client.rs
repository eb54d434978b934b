//! Asks as a program would that knows nothing of the proxy.

use serde_json::{Value, json};

/// What an asker hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    Result(Value),
    Error(i64, String),
    Status { code: u16, retry_after: Option<String> },
    Nothing,
}

pub fn ask(url: &str, method: &str, params: Value) -> Heard {
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let answer = post(url, &request.to_string());
    let Ok(answer) = answer else { return answer.unwrap_err() };
    assert_eq!(answer["id"], 7, "{answer}");
    match answer.get("error") {
        None => Heard::Result(answer["result"].clone()),
        Some(error) => {
            let words = error["message"].as_str().unwrap().to_owned();
            Heard::Error(error["code"].as_i64().unwrap(), words)
        }
    }
}

pub fn post(url: &str, request: &str) -> Result<Value, Heard> {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut response = agent.post(url).send(request).map_err(|_| Heard::Nothing)?;
    if response.status() != 200 {
        let after = response.headers().get("retry-after");
        let retry_after = after.map(|it| it.to_str().unwrap().to_owned());
        return Err(Heard::Status { code: response.status().as_u16(), retry_after });
    }
    Ok(serde_json::from_slice(&response.body_mut().read_to_vec().unwrap()).unwrap())
}
