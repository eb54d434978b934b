use std::sync::Arc;

use axum::{extract::Request, http::request::Parts};
use grid_batch_core::ServiceId;
use grid_batch_withdrawals::WithdrawalRules;

use crate::{app::App, body::other_type, error::ApiError, members::Members};

/// The longest body of a request about withdrawals.
const BODY_LIMIT: usize = 64 * 1024;

/// What every request about withdrawals can use.
pub(crate) struct Pools {
    pub(crate) app: Arc<App>,
    pub(crate) rules: Arc<dyn WithdrawalRules>,
}

impl Pools {
    /// The pool of this address, in its one form, with its gas admin.
    pub(crate) fn pool(&self, text: &str) -> Result<(String, ServiceId), ApiError> {
        self.rules.pool(text).map_err(|rule| ApiError::Value { name: "pool", rule })
    }

    pub(crate) fn beneficiary(&self, text: &str) -> Result<String, ApiError> {
        self.rules.beneficiary(text).map_err(|rule| ApiError::Value { name: "beneficiary", rule })
    }

    pub(crate) fn amount(&self, text: &str) -> Result<String, ApiError> {
        self.rules.amount(text).map_err(|rule| ApiError::Value { name: "amount", rule })
    }

    /// Reads a body with no other members than `known`; where there are none, it may be empty.
    pub(crate) async fn read(
        &self,
        request: Request,
        known: &'static [&'static str],
    ) -> Result<(Parts, Members), ApiError> {
        let (request, body) = request.into_parts();
        let body = self.app.bodies.read(&request.headers, body, BODY_LIMIT).await?;
        if body.bytes.is_empty() && known.is_empty() {
            return Ok((request, Members::default()));
        }
        if let Some(other) = other_type(&request.headers, "application/json") {
            return Err(ApiError::JsonType(other));
        }
        let members = Members::parse(&body.bytes, known)?;
        Ok((request, members))
    }
}
