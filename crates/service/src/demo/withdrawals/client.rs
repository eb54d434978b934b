//! The demonstration's client, who schedules withdrawals and asks what became of them.

use std::sync::Mutex;

use grid_batch_http::{HttpClient, HttpError, HttpOptions, HttpResponse, join};
use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::demo::{
    DemoError,
    withdrawals::plan::{Order, Plan},
};

/// A withdrawal as the service tells of it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Told {
    pub(super) state: String,
    pub(super) beneficiary: String,
    pub(super) amount: String,
    pub(super) withdrawal_id: Option<String>,
    pub(super) fail_reason: Option<String>,
}

pub(super) struct Client {
    http: HttpClient,
    runtime: Runtime,
    url: String,
    /// The ids of what was promised.
    promised: Mutex<Vec<String>>,
}

impl Client {
    pub(super) fn new(url: &str) -> Result<Self, DemoError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(DemoError::internal)?;
        let http = HttpClient::new(&HttpOptions::default()).map_err(DemoError::internal)?;
        Ok(Self { http, runtime, url: url.to_owned(), promised: Mutex::default() })
    }

    /// The service is somewhere else now.
    pub(super) fn turn_to(&mut self, url: &str) {
        url.clone_into(&mut self.url);
    }

    /// Asks for withdrawals, one after the other. Those that were asked for before are the same.
    pub(super) fn schedule(&self, orders: &[Order]) -> Result<(), DemoError> {
        for order in orders {
            let answer = self.post("withdrawals", &order.body())?;
            self.promise(&expect(answer, 201)?)?;
        }
        Ok(())
    }

    /// Makes a reward and claims it for each member twice; says how often a claim was refused.
    pub(super) fn claim_twice(&self, plan: &Plan) -> Result<usize, DemoError> {
        let reward = expect(self.post("rewards", &plan.reward())?, 201)?;
        let path = format!("rewards/{}/claim", reward["id"].as_str().unwrap_or_default());
        let mut refused = 0;
        for member in plan.members() {
            let claim = serde_json::json!({ "beneficiary": member });
            self.promise(&expect(self.post(&path, &claim)?, 201)?)?;
            expect(self.post(&path, &claim)?, 409)?;
            refused += 1;
        }
        Ok(refused)
    }

    /// All that was promised, as it stands now, in the order in which it was asked for.
    pub(super) fn all(&self) -> Result<Vec<Told>, DemoError> {
        let ids = self.promised.lock().map_err(DemoError::internal)?.clone();
        ids.iter().map(|id| self.told(id)).collect()
    }

    fn told(&self, id: &str) -> Result<Told, DemoError> {
        let url = self.at(&format!("withdrawals/{id}"))?;
        let answer = self.runtime.block_on(self.http.get(&url, &[]));
        let body = expect(answer.map_err(DemoError::internal)?, 200)?;
        serde_json::from_value(body).map_err(DemoError::internal)
    }

    fn promise(&self, withdrawal: &Value) -> Result<(), DemoError> {
        let id = withdrawal["id"].as_str().unwrap_or_default().to_owned();
        let mut promised = self.promised.lock().map_err(DemoError::internal)?;
        if !promised.contains(&id) {
            promised.push(id);
        }
        Ok(())
    }

    fn post(&self, path: &str, body: &Value) -> Result<HttpResponse, DemoError> {
        let headers = [("content-type", "application/json")];
        let (url, body) = (self.at(path)?, body.to_string());
        self.runtime
            .block_on(self.http.post(&url, &headers, body))
            .map_err(|error: HttpError| DemoError::internal(error))
    }

    fn at(&self, path: &str) -> Result<String, DemoError> {
        join(&self.url, path).map_err(DemoError::internal)
    }
}

fn expect(answer: HttpResponse, status: u16) -> Result<Value, DemoError> {
    if answer.status != status {
        return Err(DemoError::Refused { status: answer.status, text: answer.text() });
    }
    let body = answer.body.map_err(DemoError::internal)?;
    serde_json::from_slice(&body).map_err(DemoError::internal)
}
