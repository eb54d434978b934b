use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::ListedBatch;
use serde::Serialize;
use utoipa::ToSchema;

use super::{ReadContext, batch_json::BatchJson, list_query::ListQuery};
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
    params(
        ("service_id" = Option<String>, Query, description = "Batches of this service"),
        ("state" = Option<String>, Query, description = "Batches in one of these states, separated by commas; `open` and `ended` stand for all such states"),
        ("newer_than" = Option<String>, Query, description = "Batches that were stored since a time or an age such as `15m`"),
        ("older_than" = Option<String>, Query, description = "Batches that were stored before a time or an age such as `7d`"),
        ("error" = Option<bool>, Query, description = "Batches with an error, or without one"),
        ("error_contains" = Option<String>, Query, description = "Batches whose error has this text"),
        ("held" = Option<bool>, Query, description = "Batches that are held for an operator, or the others"),
        ("label" = Option<String>, Query, description = "Batches with this label"),
        ("order" = Option<String>, Query, description = "`newest` or `oldest` first"),
        ("limit" = Option<usize>, Query, description = "The most items of the page: 1 to 1,000, by default 100"),
        ("after" = Option<String>, Query, description = "`next` of the page before"),
    ),
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
