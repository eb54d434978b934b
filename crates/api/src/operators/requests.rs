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

/// An action on many batches.
#[derive(ToSchema)]
pub(super) struct ManyRequest {
    #[schema(inline)]
    #[serde(flatten)]
    action: ActionRequest,
    /// What to do with each batch.
    verb: String,
    /// Which batches. At least one field is required.
    filter: FilterRequest,
    /// The most batches: 1 to 1,000, by default 100.
    limit: Option<u32>,
    /// `next` of the answer before.
    after: Option<String>,
    /// `read_at` of the dry run that you looked at: needed for a decision about attempts.
    as_of: Option<String>,
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
