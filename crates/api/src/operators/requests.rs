//! The bodies of requests, as the description of the interface shows them.
#![expect(
    dead_code,
    reason = "the bodies are read field by field, so that each error names its field"
)]

use utoipa::ToSchema;

/// Why, and whether only to say what would change.
#[derive(ToSchema)]
pub(super) struct ActionRequest {
    /// Why, for the log.
    reason: String,
    /// Says what would change, and changes nothing.
    dry_run: Option<bool>,
}

/// A decision about one attempt of a batch.
#[derive(ToSchema)]
pub(super) struct AttemptActionRequest {
    #[schema(inline)]
    #[serde(flatten)]
    action: ActionRequest,
    /// The attempt that you looked at; 0 for a batch that was never tried.
    attempt: u32,
}

/// A decision about how a batch has ended.
#[derive(ToSchema)]
pub(super) struct EndRequest {
    #[schema(inline)]
    #[serde(flatten)]
    decision: AttemptActionRequest,
    /// `committed` or `invalid`.
    r#as: String,
}

/// A decision about nonces of a gas admin.
#[derive(ToSchema)]
pub(super) struct NonceRangeRequest {
    #[schema(inline)]
    #[serde(flatten)]
    action: ActionRequest,
    /// The first nonce.
    first: u64,
    /// The last nonce.
    last: u64,
}

/// What a nonce of a gas admin was used for.
#[derive(ToSchema)]
pub(super) struct PaidNonceRequest {
    #[schema(inline)]
    #[serde(flatten)]
    action: ActionRequest,
    /// The nonce.
    nonce: u64,
    /// The id of the withdrawal.
    withdrawal: String,
}

/// Which nonce of a gas admin is the next one.
#[derive(ToSchema)]
pub(super) struct StartNonceRequest {
    #[schema(inline)]
    #[serde(flatten)]
    action: ActionRequest,
    /// The next nonce. Those below it were used for no open withdrawal.
    nonce: u64,
}

/// An action on many batches.
#[derive(ToSchema)]
pub(super) struct ManyRequest {
    #[schema(inline)]
    #[serde(flatten)]
    action: ActionRequest,
    /// What to do with each batch.
    verb: String,
    /// Selects batches. At least one field is required. Either this or `batches`.
    filter: Option<FilterRequest>,
    /// Names up to 1,000 batches.
    batches: Option<Vec<BatchRequest>>,
    /// The most batches: 1 to 1,000, by default 100.
    limit: Option<u32>,
    /// `next` of the answer before.
    after: Option<String>,
}

/// One of many batches.
#[derive(ToSchema)]
pub(super) struct BatchRequest {
    service_id: String,
    batch_id: String,
    /// The attempt that you looked at: needed for a decision about it.
    attempt: Option<u32>,
}

/// Selects open batches.
#[derive(ToSchema)]
pub(super) struct FilterRequest {
    service_id: Option<String>,
    /// States, separated by commas.
    state: Option<String>,
    error_contains: Option<String>,
    held: Option<bool>,
    label: Option<String>,
}
