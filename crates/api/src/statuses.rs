use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::{BatchState, HeaderId, ServiceId};
use grid_batch_store::Store;

use crate::{
    app::App,
    batch_status::{BatchStatus, Statuses},
    body::other_type,
    error::ApiError,
    link,
    query::Query,
    wait,
};

/// The most ids in one question.
const MOST_IDS: usize = 1_000;
/// The longest body with ids: twice what the most of them need.
const IDS_BODY_LIMIT: usize = 256 * 1024;

/// Which batches a client asks for.
#[derive(Debug)]
pub(crate) struct Asked {
    ids: Vec<HeaderId>,
    service: Option<ServiceId>,
}

/// `GET /batch_statuses`.
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<Statuses>, ApiError> {
    let (request, _) = request.into_parts();
    let query = Query::parse(request.uri.query())?;
    let ids = query.get("id")?.filter(|ids| !ids.is_empty()).ok_or(ApiError::NoIds)?;
    let data = read(&app, &query, parse(ids.split(','))?).await?;
    Ok(Json(Statuses { data, link: Some(link::to_itself(&request, app.local_addr)) }))
}

/// `POST /batch_statuses`: for more ids than fit into an address.
pub(crate) async fn post(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<Statuses>, ApiError> {
    let (request, body) = request.into_parts();
    let body = app.bodies.read(&request.headers, body, IDS_BODY_LIMIT).await?;
    if let Some(other) = other_type(&request.headers, "application/json") {
        return Err(ApiError::IdsType(other));
    }
    let query = Query::parse(request.uri.query())?;
    let ids: Vec<String> = serde_json::from_slice(&body.bytes).map_err(|_| ApiError::IdsBody)?;
    drop(body);
    if ids.is_empty() {
        return Err(ApiError::IdsBody);
    }
    let data = read(&app, &query, parse(ids.iter().map(String::as_str))?).await?;
    Ok(Json(Statuses { data, link: None }))
}

fn parse<'a>(ids: impl Iterator<Item = &'a str>) -> Result<Vec<HeaderId>, ApiError> {
    let ids: Vec<HeaderId> =
        ids.take(MOST_IDS + 1).map(str::parse).collect::<Result<_, _>>().map_err(ApiError::Id)?;
    if ids.len() > MOST_IDS {
        return Err(ApiError::TooManyIds { limit: MOST_IDS });
    }
    Ok(ids)
}

async fn read(app: &App, query: &Query, ids: Vec<HeaderId>) -> Result<Vec<BatchStatus>, ApiError> {
    let asked = Asked { ids, service: query.service_id()? };
    wait::follow(app, asked, wait::asked_for(query, app.parts.options.wait_limit)?).await
}

impl Asked {
    /// Reads all of them, in the order in which they were asked for.
    pub(crate) fn read(&self, store: &Store) -> Result<Vec<BatchStatus>, ApiError> {
        self.ids.iter().map(|id| self.read_one(store, *id)).collect()
    }

    pub(crate) fn read_one(&self, store: &Store, id: HeaderId) -> Result<BatchStatus, ApiError> {
        let mut found = store.find(&id).map_err(ApiError::not_read)?;
        if let Some(service) = &self.service {
            found.retain(|batch| batch.service_id == *service);
        }
        let services = found.len();
        let Some(batch) = found.pop() else { return Ok(BatchStatus::unknown(id)) };
        if services > 1 {
            return Err(ApiError::Ambiguous { id, services });
        }
        if batch.progress.state != BatchState::Invalid {
            return Ok(BatchStatus::of(batch, Vec::new()));
        }
        let story = store.details(&batch.service_id, &id).map_err(ApiError::not_read)?;
        Ok(BatchStatus::of(batch, story.map_or_else(Vec::new, |story| story.receipts)))
    }
}
