use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::{Halt, HaltCursor};
use serde::Serialize;
use utoipa::ToSchema;

use super::OperatorContext;
use crate::{
    access::Caller,
    http::{
        ApiError, Problems, Query,
        page_query::{after, limit},
        rfc3339,
    },
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

/// `GET /v1/halts`: the invalid batches that stop others, by service and in order.
#[utoipa::path(
    get, path = "/v1/halts", tag = "operators", operation_id = "listHalts", summary = "Invalid batches that stop others",
    params(
        ("limit" = Option<usize>, Query, description = "The most items of the page: 1 to 1,000, by default 100"),
        ("after" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses((status = 200, description = "The page", body = HaltsJson), Problems),
)]
pub(super) async fn get(
    State(context): State<Arc<OperatorContext>>,
    request: Request,
) -> Result<Json<HaltsJson>, ApiError> {
    let (request, _) = request.into_parts();
    let query = Query::parse(request.uri.query())?;
    query.check_names(&["limit", "after"])?;
    Caller::of(&request)?.check_selected(None)?;
    let (after, limit) = (after::<HaltCursor>(&query)?, limit(&query)?);
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
            stored_at: rfc3339(batch.created_at),
            last_error: batch.last_error,
            stops_since: rfc3339(since),
            following_ends: is_ending,
        }
    }
}
