use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use super::ReadContext;
use crate::http::{ApiError, NoParams, Params, Problems};

/// What was counted last; `None`: nothing yet. It must not block.
pub(crate) type CountsSource = dyn Fn() -> Option<OpenCounts> + Send + Sync;

/// The open batches of all instances, as they were counted last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct OpenCounts {
    /// All of them.
    pub open: u64,
    /// By state.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub states: BTreeMap<&'static str, u64>,
    /// By the reason for which they wait.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub reasons: BTreeMap<&'static str, u64>,
    /// Those that are held for an operator, also behind others.
    pub held: u64,
    /// The age of the oldest one; 0 if none is open.
    pub oldest_seconds: f64,
    /// How long ago they were counted.
    pub age_seconds: f64,
}

/// The counts; null until open batches were counted for the first time.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CountsJson {
    counts: Option<OpenCounts>,
}

/// `GET /v1/counts`.
#[utoipa::path(
    get, path = "/v1/counts", tag = "services", operation_id = "getCounts", summary = "Open batches by state and by reason",
    responses((status = 200, description = "What was counted last", body = CountsJson), Problems),
)]
pub(super) async fn get(
    State(context): State<Arc<ReadContext>>,
    _: Params<NoParams>,
) -> Result<Json<CountsJson>, ApiError> {
    let counts = context.sources.counts.as_ref().and_then(|source| source());
    Ok(Json(CountsJson { counts }))
}
