use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Request, State, rejection::PathRejection},
};
use grid_batch_core::HeaderId;
use serde::Serialize;

use super::{context::EventContext, event_json::EventJson};
use crate::http::{ApiError, Query};

/// The events of a batch.
#[derive(Debug, Serialize)]
pub(super) struct HistoryJson {
    data: Vec<EventJson>,
}

/// `GET /v1/batches/{id}/history`: everything that happened to a batch, in order.
pub(super) async fn get(
    State(context): State<Arc<EventContext>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<HistoryJson>, ApiError> {
    let Path(id) = path.map_err(|_| ApiError::NotFound)?;
    let id: HeaderId = id.parse()?;
    let query = Query::parse(request.uri().query())?;
    query.check_names(&["service_id"])?;
    let service_id = query.service_id()?;
    let (store, batches) = (Arc::clone(&context.store), Arc::clone(&context.batches));
    let read = move || {
        let mut found = batches.find(&id).map_err(ApiError::read_failed)?;
        if let Some(service_id) = &service_id {
            found.retain(|batch| batch.service_id == *service_id);
        }
        let services = found.len();
        let batch = match (found.pop(), services) {
            (Some(batch), 1) => batch,
            (Some(_), _) => return Err(ApiError::SeveralServices { id, services }),
            (None, _) => return Err(ApiError::BatchNotFound(id)),
        };
        let history = store.history(&batch.service_id, &id).map_err(ApiError::read_failed)?;
        history.ok_or(ApiError::BatchNotFound(id))
    };
    let events = context.api.reads.run(read).await?;
    Ok(Json(HistoryJson { data: events.into_iter().map(EventJson::from).collect() }))
}
