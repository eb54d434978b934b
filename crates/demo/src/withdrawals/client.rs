//! The client, who requests withdrawals and claims a reward.

use grid_batch_client::{Client, ClientError, ClientOptions};
use serde::Deserialize;
use serde_json::Value;

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
    client: Client,
    /// The ids of accepted withdrawals, in the order in which they were requested.
    accepted: Vec<String>,
}

impl WithdrawalClient {
    pub(super) fn new(url: &str) -> Result<Self, DemoError> {
        Ok(Self { client: client(url)?, accepted: Vec::new() })
    }

    /// Sends further requests to this URL.
    pub(super) fn set_url(&mut self, url: &str) -> Result<(), DemoError> {
        self.client = client(url)?;
        Ok(())
    }

    /// Requests withdrawals, one after the other. A repeated request changes nothing.
    pub(super) fn schedule(&mut self, requests: &[WithdrawalRequest]) -> Result<(), DemoError> {
        requests.iter().try_for_each(|request| self.request("/withdrawals", &request.body()))
    }

    /// Creates a reward and claims it twice for each member. Returns how many claims were refused.
    pub(super) fn claim_twice(&mut self, plan: &WithdrawalPlan) -> Result<usize, DemoError> {
        let reward = self.client.post("/rewards", &[], &plan.reward())?;
        let path = format!("/rewards/{}/claim", reward["id"].as_str().unwrap_or_default());
        let mut refused = 0;
        for member in plan.members() {
            let claim = serde_json::json!({ "beneficiary": member });
            self.request(&path, &claim)?;
            match self.client.post(&path, &[], &claim) {
                Err(ClientError::Refused { status: 409, .. }) => refused += 1,
                Err(error) => return Err(error.into()),
                Ok(_) => {
                    let message = format!("the server has accepted a second claim of {member}");
                    return Err(DemoError::internal(message));
                }
            }
        }
        Ok(refused)
    }

    /// All accepted withdrawals as they are now, in the order in which they were requested.
    pub(super) fn withdrawals(&self) -> Result<Vec<WithdrawalView>, DemoError> {
        self.accepted.iter().map(|id| self.withdrawal(id)).collect()
    }

    fn withdrawal(&self, id: &str) -> Result<WithdrawalView, DemoError> {
        let withdrawal = self.client.get(&format!("/withdrawals/{id}"), &[])?;
        serde_json::from_value(withdrawal).map_err(DemoError::internal)
    }

    /// Makes a request whose answer is a withdrawal.
    fn request(&mut self, path: &str, body: &Value) -> Result<(), DemoError> {
        let withdrawal = self.client.post(path, &[], body)?;
        let id = withdrawal["id"].as_str().unwrap_or_default().to_owned();
        if !self.accepted.contains(&id) {
            self.accepted.push(id);
        }
        Ok(())
    }
}

fn client(url: &str) -> Result<Client, ClientError> {
    Client::new(ClientOptions { url: url.to_owned(), ..ClientOptions::default() })
}
