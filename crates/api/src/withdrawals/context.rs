use std::sync::Arc;

use axum::{extract::Request, http::request::Parts};
use grid_batch_core::ServiceId;
use grid_batch_withdrawals::{CallRules, WithdrawalDetails, WithdrawalRules, WithdrawalStore};
use serde::de::DeserializeOwned;

use crate::{
    http::{ApiError, Links, RequestError, names_of},
    state::{ApiState, SharedStore, StoredCallback},
    withdrawals::{QueuedJson, WithdrawalQueue, WithdrawalRequestError},
};

/// How many rewards, retries and cancellations are written at once. SQLite has one writer, and writes
/// for one gas admin wait for each other.
pub(crate) const WRITES: usize = 4;

/// What the handlers of withdrawals, rewards and transactions need.
pub(crate) struct WithdrawalContext {
    pub(crate) api: Arc<ApiState>,
    pub(crate) store: SharedStore<dyn WithdrawalStore>,
    pub(crate) stored: StoredCallback,
    /// The queue of what schedules new withdrawals.
    pub(crate) queue: WithdrawalQueue,
    pub(crate) rules: Arc<dyn WithdrawalRules>,
    /// `None`: no other transactions than withdrawals are accepted.
    pub(crate) calls: Option<Arc<dyn CallRules>>,
}

impl WithdrawalContext {
    /// Parses the address of a pool. Returns its canonical form, and the service of its gas admin.
    pub(crate) fn parse_pool(&self, text: &str) -> Result<(String, ServiceId), ApiError> {
        self.rules.pool(text).map_err(|rule| ApiError::invalid_value("pool", rule))
    }

    /// Parses the address of a pool that may have been removed into its canonical form.
    pub(crate) fn parse_any_pool(&self, text: &str) -> Result<String, ApiError> {
        self.rules.pool_address(text).map_err(|rule| ApiError::invalid_value("pool", rule))
    }

    /// Parses the address of a beneficiary into its canonical form.
    pub(crate) fn parse_beneficiary(&self, text: &str) -> Result<String, ApiError> {
        let invalid = |rule| ApiError::invalid_value("beneficiary", rule);
        self.rules.beneficiary(text).map_err(invalid)
    }

    /// Parses an amount into its canonical form.
    pub(crate) fn parse_amount(&self, text: &str) -> Result<String, ApiError> {
        self.rules.amount(text).map_err(|rule| ApiError::invalid_value("amount", rule))
    }

    /// The rules of transactions. Without them, their routes are not served.
    pub(crate) fn call_rules(&self) -> Result<&dyn CallRules, ApiError> {
        let rules = self.calls.as_deref();
        rules.ok_or_else(|| WithdrawalRequestError::TransactionsNotServed.into())
    }

    /// Parses the name, the address or the service of an account.
    pub(crate) fn parse_account(&self, text: &str) -> Result<ServiceId, ApiError> {
        self.call_rules()?.account(text).map_err(|rule| ApiError::invalid_value("account", rule))
    }

    /// The service of an account that may have been removed from the settings.
    pub(crate) fn parse_any_account(&self, text: &str) -> Result<ServiceId, ApiError> {
        let known = self.parse_account(text);
        known.or_else(|error| text.parse().ok().filter(|_| text.contains(':')).ok_or(error))
    }

    /// The answer about something stored. What is of another kind than the client asked for does not exist for it.
    pub(crate) fn json<J: QueuedJson>(
        &self,
        details: &WithdrawalDetails,
        links: &Links<'_>,
    ) -> Result<J, ApiError> {
        let json = J::of(details, self, links);
        json.ok_or_else(|| J::KIND.not_found(details.withdrawal.id).into())
    }

    /// Reads a request whose body is a JSON object of the fields of a type.
    pub(crate) async fn read_json<T: DeserializeOwned>(
        &self,
        request: Request,
    ) -> Result<(Parts, T), ApiError> {
        self.api.read_json(request).await.map_err(|error| match error.get() {
            Some(&RequestError::BodyTooLong { limit }) => {
                RequestError::FieldsTooLong { limit, known: names_of::<T>() }.into()
            }
            _ => error,
        })
    }
}
