use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::queries::{Halt, HaltCursor};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::OperatorContext;
use crate::{
    access::Caller,
    http::{ApiError, PageLimit, PageStart, Problems, Query},
};

/// An invalid batch that stops others until an operator decides.
#[derive(Debug, Serialize, ToSchema)]
struct HaltJson {
    service_id: String,
    batch_id: String,
    attempts: u32,
    stored_at: String,
    last_error: Option<String>,
    stops_since: String,
    /// An operator has ended what follows it, and that is not done.
    following_ends: bool,
}

/// A page of halts.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HaltsJson {
    data: Vec<HaltJson>,
    next: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct HaltsParams {
    /// Limit of the items of the page: 1 to 1,000, by default 100
    #[serde(default)]
    #[param(value_type = Option<usize>)]
    limit: PageLimit,
    /// `next` of the page before
    #[param(value_type = Option<String>)]
    after: Option<PageStart<HaltCursor>>,
}

/// `GET /v1/halts`: the invalid batches that stop others, by service and in order.
#[utoipa::path(
    get, path = "/v1/halts", tag = "operators", operation_id = "listHalts", summary = "Invalid batches that stop others",
    params(HaltsParams),
    responses((status = 200, description = "The page", body = HaltsJson), Problems),
)]
pub(super) async fn get(
    State(context): State<Arc<OperatorContext>>,
    request: Request,
) -> Result<Json<HaltsJson>, ApiError> {
    let (request, _) = request.into_parts();
    let params: HaltsParams = Query::parse(request.uri.query())?.params()?;
    Caller::of(&request)?.check_selected(None)?;
    let after = params.after.map(|PageStart(cursor)| cursor);
    let PageLimit(limit) = params.limit;
    let store = Arc::clone(&context.store);
    let read = move || store.halts(after.as_ref(), limit).map_err(ApiError::read_failed);
    let halts = context.api.reads.run(read).await?;
    let is_full = halts.len() >= limit;
    let next = halts.last().filter(|_| is_full).map(|last| HaltCursor::after(last).to_string());
    Ok(Json(HaltsJson { data: halts.into_iter().map(HaltJson::from).collect(), next }))
}

impl From<Halt> for HaltJson {
    fn from(Halt { batch, since, is_ending, .. }: Halt) -> Self {
        Self {
            service_id: batch.service_id.to_string(),
            batch_id: batch.batch_id.to_string(),
            attempts: batch.progress.attempts,
            stored_at: batch.created_at.rfc3339(),
            last_error: batch.last_error,
            stops_since: since.rfc3339(),
            following_ends: is_ending,
        }
    }
}
