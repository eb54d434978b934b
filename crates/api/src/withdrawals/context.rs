use std::sync::Arc;

use axum::{extract::Request, http::request::Parts};
use grid_batch_core::ServiceId;
use grid_batch_withdrawals::{WithdrawalRules, WithdrawalStore};
use serde::de::DeserializeOwned;

use crate::{
    http::{ApiError, RequestError, names_of},
    state::{ApiState, SharedStore, StoredCallback},
    withdrawals::WithdrawalQueue,
};

/// How many rewards, retries and cancellations are written at once. SQLite has one writer, and writes
/// for one gas admin wait for each other.
pub(crate) const WRITES: usize = 4;

/// What the handlers of withdrawals and rewards need.
pub(crate) struct WithdrawalContext {
    pub(crate) api: Arc<ApiState>,
    pub(crate) store: SharedStore<dyn WithdrawalStore>,
    pub(crate) stored: StoredCallback,
    /// The queue of what schedules new withdrawals.
    pub(crate) queue: WithdrawalQueue,
    pub(crate) rules: Arc<dyn WithdrawalRules>,
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
