use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::ListedBatch;
use serde::Serialize;

use super::{ReadContext, batch_json::BatchJson, list_query::ListQuery};
use crate::http::{ApiError, Query};

/// A page of a list.
#[derive(Debug, Serialize)]
pub(super) struct PageJson<T> {
    pub(super) data: Vec<T>,
    /// The parameter `after` of the next page; null after the last one.
    pub(super) next: Option<String>,
}

/// `GET /v1/batches`: a page of batches, in the order in which they were stored.
pub(super) async fn get(
    State(context): State<Arc<ReadContext>>,
    request: Request,
) -> Result<Json<PageJson<BatchJson>>, ApiError> {
    let (request, _) = request.into_parts();
    let query = Query::parse(request.uri.query())?;
    let list = ListQuery::parse(&query, context.api.clock.now())?;
    let pages = Arc::clone(&context.pages);
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
