//! The client, who requests withdrawals and claims a reward.

use std::sync::Mutex;

use grid_batch_http::{HttpClient, HttpOptions, HttpResponse, join};
use grid_batch_support::lock;
use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::plan::{WithdrawalPlan, WithdrawalRequest};
use crate::DemoError;

/// A withdrawal as the server reports it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct WithdrawalView {
    pub(super) state: String,
    pub(super) beneficiary: String,
    pub(super) amount: String,
    pub(super) withdrawal_id: Option<String>,
    pub(super) fail_reason: Option<String>,
}

pub(super) struct WithdrawalClient {
    http: HttpClient,
    runtime: Runtime,
    url: String,
    /// The ids of accepted withdrawals, in the order in which they were requested.
    accepted: Mutex<Vec<String>>,
}

impl WithdrawalClient {
    pub(super) fn new(url: &str) -> Result<Self, DemoError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(DemoError::internal)?;
        let http = HttpClient::new(&HttpOptions::default()).map_err(DemoError::internal)?;
        Ok(Self { http, runtime, url: url.to_owned(), accepted: Mutex::default() })
    }

    /// Sends further requests to this URL.
    pub(super) fn set_url(&mut self, url: &str) {
        url.clone_into(&mut self.url);
    }

    /// Requests withdrawals, one after the other. A repeated request changes nothing.
    pub(super) fn schedule(&self, requests: &[WithdrawalRequest]) -> Result<(), DemoError> {
        for request in requests {
            let answer = self.post("withdrawals", &request.body())?;
            self.remember(&expect_status(answer, 201)?);
        }
        Ok(())
    }

    /// Creates a reward and claims it twice for each member. Returns how many claims were refused.
    pub(super) fn claim_twice(&self, plan: &WithdrawalPlan) -> Result<usize, DemoError> {
        let reward = expect_status(self.post("rewards", &plan.reward())?, 201)?;
        let path = format!("rewards/{}/claim", reward["id"].as_str().unwrap_or_default());
        let mut refused = 0;
        for member in plan.members() {
            let claim = serde_json::json!({ "beneficiary": member });
            self.remember(&expect_status(self.post(&path, &claim)?, 201)?);
            expect_status(self.post(&path, &claim)?, 409)?;
            refused += 1;
        }
        Ok(refused)
    }

    /// All accepted withdrawals as they are now, in the order in which they were requested.
    pub(super) fn withdrawals(&self) -> Result<Vec<WithdrawalView>, DemoError> {
        let ids = lock(&self.accepted).clone();
        ids.iter().map(|id| self.withdrawal(id)).collect()
    }

    fn withdrawal(&self, id: &str) -> Result<WithdrawalView, DemoError> {
        let url = self.endpoint(&format!("withdrawals/{id}"))?;
        let answer = self.runtime.block_on(self.http.get(&url, &[]));
        let body = expect_status(answer.map_err(DemoError::internal)?, 200)?;
        serde_json::from_value(body).map_err(DemoError::internal)
    }

    fn remember(&self, withdrawal: &Value) {
        let id = withdrawal["id"].as_str().unwrap_or_default().to_owned();
        let mut accepted = lock(&self.accepted);
        if !accepted.contains(&id) {
            accepted.push(id);
        }
    }

    fn post(&self, path: &str, body: &Value) -> Result<HttpResponse, DemoError> {
        let headers = [("content-type", "application/json")];
        let (url, body) = (self.endpoint(path)?, body.to_string());
        self.runtime.block_on(self.http.post(&url, &headers, body)).map_err(DemoError::internal)
    }

    fn endpoint(&self, path: &str) -> Result<String, DemoError> {
        join(&self.url, path).map_err(DemoError::internal)
    }
}

fn expect_status(answer: HttpResponse, status: u16) -> Result<Value, DemoError> {
    if answer.status != status {
        return Err(DemoError::UnexpectedAnswer { status: answer.status, text: answer.text() });
    }
    let body = answer.body.map_err(DemoError::internal)?;
    serde_json::from_slice(&body).map_err(DemoError::internal)
}
