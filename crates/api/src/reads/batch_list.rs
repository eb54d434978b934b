use std::sync::Arc;

use axum::{Json, extract::State, http::request::Parts};
use grid_batch_core::queries::ListedBatch;

use super::{
    ReadContext,
    batch_json::BatchJson,
    list_query::{ListParams, ListQuery},
};
use crate::{
    access::Caller,
    http::{ApiError, PageJson, Problems, read_params},
};

/// `GET /v1/batches`: a page of batches, in the order in which they were stored.
#[utoipa::path(
    get, path = "/v1/batches", tag = "batches", operation_id = "listBatches", summary = "A page of batches",
    params(ListParams),
    responses(
        (status = 200, description = "The page, which can have fewer batches than `limit` and not be the last one", body = PageJson<BatchJson>),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<ReadContext>>,
    request: Parts,
) -> Result<Json<PageJson<BatchJson>>, ApiError> {
    let list = ListQuery::new(read_params(&request)?, context.api.clock.now())?;
    Caller::of(&request)?.check_selected(list.selection.service_id.as_ref())?;
    let pages = Arc::clone(&context.batches);
    let read = move || pages.batch_page(&list.selection, list.order, list.after, list.limit);
    let page = context.api.read(read).await?;
    let links = context.api.links(&request);
    let json = |listed: ListedBatch| {
        let ListedBatch { batch, label, error } = listed;
        BatchJson::new(&batch, label.as_ref(), error, &links)
    };
    let next = page.next.map(|next| next.to_string());
    Ok(Json(PageJson { next, ..PageJson::all(page.batches, json) }))
}
