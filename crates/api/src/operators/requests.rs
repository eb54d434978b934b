//! The bodies of requests.

use grid_batch_core::ServiceId;
use grid_batch_core::operators::OperatorTarget;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    http::{ApiError, PageLimit, PageStart},
    state::ActionRequest,
};

/// A decision about one attempt of a batch.
#[derive(Deserialize, ToSchema)]
pub(super) struct AttemptActionRequest {
    /// Why, for the log.
    pub(super) reason: String,
    /// Says what would change, and changes nothing.
    pub(super) dry_run: Option<bool>,
    /// The attempt that you looked at; 0 for a batch that was never tried.
    #[schema(value_type = u32)]
    pub(super) attempt: Option<u32>,
}

/// A decision about how a batch has ended.
#[derive(Deserialize, ToSchema)]
pub(super) struct EndRequest {
    /// Why, for the log.
    pub(super) reason: String,
    /// Says what would change, and changes nothing.
    pub(super) dry_run: Option<bool>,
    /// The attempt that you looked at; 0 for a batch that was never tried.
    #[schema(value_type = u32)]
    pub(super) attempt: Option<u32>,
    /// How.
    pub(super) r#as: BatchEnd,
}

/// How a batch has ended.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum BatchEnd {
    Committed,
    Invalid,
}

impl From<ActionRequest> for AttemptActionRequest {
    fn from(ActionRequest { reason, dry_run }: ActionRequest) -> Self {
        Self { reason, dry_run, attempt: None }
    }
}

/// A decision about nonces of a gas admin.
#[derive(Deserialize, ToSchema)]
pub(super) struct NonceRangeRequest {
    /// Why, for the log.
    pub(super) reason: String,
    /// Says what would change, and changes nothing.
    pub(super) dry_run: Option<bool>,
    /// The first nonce.
    first: u64,
    /// The last nonce.
    last: u64,
}

/// What a nonce of a gas admin was used for.
#[derive(Deserialize, ToSchema)]
pub(super) struct PaidNonceRequest {
    /// Why, for the log.
    pub(super) reason: String,
    /// Says what would change, and changes nothing.
    pub(super) dry_run: Option<bool>,
    /// The nonce.
    nonce: u64,
    /// The id of the withdrawal.
    withdrawal: String,
}

/// Which nonce of a gas admin is the next one.
#[derive(Deserialize, ToSchema)]
pub(super) struct StartNonceRequest {
    /// Why, for the log.
    pub(super) reason: String,
    /// Says what would change, and changes nothing.
    pub(super) dry_run: Option<bool>,
    /// The next nonce. Those below it were used for nothing that is open.
    nonce: u64,
}

/// A decision about nonces.
pub(super) trait NonceDecision {
    fn target(&self, service_id: ServiceId) -> Result<OperatorTarget, ApiError>;
}

impl NonceDecision for NonceRangeRequest {
    fn target(&self, service_id: ServiceId) -> Result<OperatorTarget, ApiError> {
        let Self { first, last, .. } = *self;
        if first > last || i64::try_from(last).is_err() {
            return Err(ApiError::invalid_value("last", "it must be a nonce, and not below first"));
        }
        Ok(OperatorTarget::Nonces { service_id, first, last })
    }
}

impl NonceDecision for PaidNonceRequest {
    fn target(&self, service_id: ServiceId) -> Result<OperatorTarget, ApiError> {
        let paid = self.withdrawal.parse()?;
        Ok(OperatorTarget::PaidNonce { service_id, nonce: self.nonce, paid })
    }
}

impl NonceDecision for StartNonceRequest {
    fn target(&self, service_id: ServiceId) -> Result<OperatorTarget, ApiError> {
        let nonce = self.nonce;
        if i64::try_from(nonce).is_err() {
            return Err(ApiError::invalid_value("nonce", "it must be a nonce"));
        }
        Ok(OperatorTarget::Nonces { service_id, first: nonce, last: nonce })
    }
}

/// An action on many batches.
#[derive(Deserialize, ToSchema)]
pub(super) struct ManyRequest {
    /// Why, for the log.
    pub(super) reason: String,
    /// Says what would change, and changes nothing.
    pub(super) dry_run: Option<bool>,
    /// What to do with each batch.
    pub(super) verb: String,
    /// Selects batches. At least one field is required. Either this or `batches`.
    pub(super) filter: Option<FilterRequest>,
    /// Names up to 1,000 batches.
    pub(super) batches: Option<Vec<BatchRequest>>,
    /// The most batches: 1 to 1,000, by default 100.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1_000)]
    pub(super) limit: Option<PageLimit>,
    /// `next` of the answer before.
    #[schema(value_type = Option<String>)]
    pub(super) after: Option<PageStart>,
}

/// One of many batches.
#[derive(Deserialize, ToSchema)]
pub(super) struct BatchRequest {
    pub(super) service_id: String,
    pub(super) batch_id: String,
    /// The attempt that you looked at: needed for a decision about it.
    pub(super) attempt: Option<u32>,
}

/// Selects open batches.
#[derive(Deserialize, ToSchema)]
pub(super) struct FilterRequest {
    pub(super) service_id: Option<String>,
    /// States, separated by commas.
    pub(super) state: Option<String>,
    pub(super) error_contains: Option<String>,
    pub(super) held: Option<bool>,
    pub(super) label: Option<String>,
}
