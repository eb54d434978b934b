use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::queries::ListedBatch;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ReadContext,
    batch_json::BatchJson,
    list_query::{ListParams, ListQuery},
};
use crate::{
    access::Caller,
    http::{ApiError, Problems, Query},
};

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PageJson<T> {
    pub(super) data: Vec<T>,
    /// The parameter `after` of the next page; null after the last one.
    pub(super) next: Option<String>,
}

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
    request: Request,
) -> Result<Json<PageJson<BatchJson>>, ApiError> {
    let (request, _) = request.into_parts();
    let query = Query::parse(request.uri.query())?;
    let list = ListQuery::parse(&query, context.api.clock.now())?;
    Caller::of(&request)?.check_selected(list.selection.service_id.as_ref())?;
    let pages = Arc::clone(&context.batches);
    let read = move || {
        let page = pages.batch_page(&list.selection, list.order, list.after, list.limit);
        page.map_err(ApiError::read_failed)
    };
    let page = context.api.reads.run(read).await?;
    let json = |listed: ListedBatch| {
        let ListedBatch { batch, label, error } = listed;
        BatchJson::new(&context, &request, batch, label.as_ref(), error)
    };
    let next = page.next.map(|next| next.to_string());
    Ok(Json(PageJson { data: page.batches.into_iter().map(json).collect(), next }))
}
