use std::sync::Arc;

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use super::ReadContext;
use crate::http::{ApiError, NoParams, PageJson, Params, Problems};

/// What was measured in the last hour. It must not block.
pub(crate) type HistorySource = dyn Fn() -> Vec<HistoryPoint> + Send + Sync;

/// What was measured at one time. The counts are those of this instance since its start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct HistoryPoint {
    /// How long ago.
    pub seconds_ago: f64,
    /// Open batches, of all instances.
    pub open: u64,
    /// The age of the oldest open batch, of all instances; 0 if none is open.
    pub oldest_seconds: f64,
    /// How many attempts to submit a batch had begun.
    pub submitted: u64,
    /// How many batches had ended as committed.
    pub committed: u64,
    /// How many batches had ended as invalid.
    pub invalid: u64,
}

/// `GET /v1/history`.
#[utoipa::path(
    get, path = "/v1/history", tag = "services", operation_id = "getHistory", summary = "Depth, age and counts of the last hour",
    responses(
        (status = 200, description = "What was measured, the oldest first", body = PageJson<HistoryPoint>),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<ReadContext>>,
    _: Params<NoParams>,
) -> Result<Json<PageJson<HistoryPoint>>, ApiError> {
    let data = context.sources.history.as_ref().map(|source| source()).unwrap_or_default();
    Ok(Json(PageJson { data, next: None }))
}
