use std::sync::Arc;

use axum::{Json, extract::State};
use grid_batch_core::queries::{Halt, HaltCursor};

use super::OperatorContext;
use crate::{
    access::Caller,
    http::{ApiError, PageJson, PageParams, PageStart, Params, Problems, Time, json_types},
};

json_types! {
    /// An invalid batch that stops others until an operator decides.
    pub(super) struct HaltJson(halt: Halt) {
        service_id: String = halt.batch.service_id.to_string(),
        batch_id: String = halt.batch.batch_id.to_string(),
        attempts: u32 = halt.batch.progress.attempts,
        stored_at: Time = Time(halt.batch.created_at),
        last_error: Option<String> = halt.batch.last_error,
        stops_since: Time = Time(halt.since),
        /// An operator has ended what follows it, and that is not done.
        following_ends: bool = halt.is_ending,
    }
}

/// `GET /v1/halts`: the invalid batches that stop others, by service and in order.
#[utoipa::path(
    get, path = "/v1/halts", tag = "operators", operation_id = "listHalts", summary = "Invalid batches that stop others",
    params(PageParams),
    responses((status = 200, description = "The page", body = PageJson<HaltJson>), Problems),
)]
pub(super) async fn get(
    State(context): State<Arc<OperatorContext>>,
    Params(PageParams { limit, after }): Params<PageParams>,
    caller: Caller,
) -> Result<Json<PageJson<HaltJson>>, ApiError> {
    caller.check_selected(None)?;
    let after: Option<HaltCursor> = after.map(PageStart::cursor).transpose()?;
    let halts = context.store.read(move |store| store.halts(after.as_ref(), limit.0 + 1)).await?;
    let cursor = |last: &Halt| HaltCursor::after(last).to_string();
    Ok(Json(PageJson::cut(halts, limit, cursor, HaltJson::new)))
}
