use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::HeaderId;

use crate::{
    access::Caller,
    batches::{
        status_json::{BatchStatusJson, BatchStatusesJson},
        status_query::{StatusContext, StatusQuery},
        status_wait::{read_or_wait, requested_wait},
    },
    http::{ApiError, Query, json_content_type, link},
};

/// The most ids in one request.
const MAX_IDS: usize = 1_000;
/// The longest body with ids: twice what `MAX_IDS` ids take.
const IDS_BODY_LIMIT: usize = 256 * 1024;

/// `GET /batch_statuses`.
pub(crate) async fn get(
    State(context): State<Arc<StatusContext>>,
    request: Request,
) -> Result<Json<BatchStatusesJson>, ApiError> {
    let (request, _) = request.into_parts();
    let query = Query::parse(request.uri.query())?;
    let ids = query.get("id")?.filter(|ids| !ids.is_empty()).ok_or(ApiError::MissingIds)?;
    let data = read(&context, Caller::of(&request)?, &query, parse_ids(ids.split(','))?).await?;
    let link = Some(link::to_request(&request, context.api.local_addr));
    Ok(Json(BatchStatusesJson { data, link }))
}

/// `POST /batch_statuses`: for more ids than fit into a URL.
pub(crate) async fn post(
    State(context): State<Arc<StatusContext>>,
    request: Request,
) -> Result<Json<BatchStatusesJson>, ApiError> {
    let (request, body) = request.into_parts();
    let body = context.api.bodies.read(&request.headers, body, IDS_BODY_LIMIT).await?;
    json_content_type(&request.headers).map_err(ApiError::IdsContentType)?;
    let query = Query::parse(request.uri.query())?;
    let ids: Vec<String> =
        serde_json::from_slice(&body.bytes).map_err(|_| ApiError::InvalidIdList)?;
    // Returns the reserved memory before a possible wait.
    drop(body);
    if ids.is_empty() {
        return Err(ApiError::InvalidIdList);
    }
    let data =
        read(&context, Caller::of(&request)?, &query, parse_ids(ids.iter().map(String::as_str))?)
            .await?;
    Ok(Json(BatchStatusesJson { data, link: None }))
}

fn parse_ids<'a>(ids: impl Iterator<Item = &'a str>) -> Result<Vec<HeaderId>, ApiError> {
    let ids: Vec<HeaderId> = ids.take(MAX_IDS + 1).map(str::parse).collect::<Result<_, _>>()?;
    if ids.len() > MAX_IDS {
        return Err(ApiError::TooManyIds { limit: MAX_IDS });
    }
    Ok(ids)
}

async fn read(
    context: &StatusContext,
    caller: &Caller,
    query: &Query,
    ids: Vec<HeaderId>,
) -> Result<Vec<BatchStatusJson>, ApiError> {
    let service_id = query.service_id()?;
    service_id.as_ref().map_or(Ok(()), |service_id| caller.check(service_id))?;
    let wait = requested_wait(query, context.api.options.status_wait_limit)?;
    read_or_wait(context, StatusQuery { ids, service_id, caller: caller.clone() }, wait).await
}
