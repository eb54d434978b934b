use std::{collections::HashMap, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::{GlobalScopeId, ItemId, ScopeId, ServiceId};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    access::Caller,
    batches::{
        BatchRequestError,
        status_json::{BatchStatusJson, BatchStatusesJson},
        status_query::{StatusContext, StatusQuery},
        status_wait::{read_or_wait, requested_wait},
    },
    http::{ApiError, Query, SawtoothErrors, json_content_type},
    pass_through::Forwarding,
};

/// The most ids in one request.
const MAX_IDS: usize = 1_000;
/// The longest body with ids: twice what `MAX_IDS` ids take.
const IDS_BODY_LIMIT: usize = 256 * 1024;

/// Which batches.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct IdParams {
    /// Batch ids, separated by commas
    #[param(value_type = String)]
    id: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct StatusParams {
    /// The service, if the batch is stored for several
    service_id: Option<String>,
    /// Wait up to so many seconds until no batch is pending; 0 and anything that is not a number stand for the longest
    /// wait
    wait: Option<String>,
}

/// `GET /batch_statuses`.
#[utoipa::path(
    get, path = "/batch_statuses", tag = "batches", operation_id = "getBatchStatuses", summary = "Statuses of batches",
    params(IdParams, StatusParams),
    responses(
        (status = 200, description = "The statuses, in the order of the request", body = BatchStatusesJson),
        SawtoothErrors,
    ),
)]
pub(crate) async fn get(
    State(context): State<Arc<StatusContext>>,
    request: Request,
) -> Result<Json<BatchStatusesJson>, ApiError> {
    let (request, _) = request.into_parts();
    let query = Query::parse(request.uri.query())?;
    let IdParams { id } = query.some_params()?;
    let ids = id.filter(|ids| !ids.is_empty()).ok_or(BatchRequestError::MissingIds)?;
    let ids = context.parse_ids(ids.split(','))?;
    let data = read(&context, Caller::of(&request)?, query.some_params()?, ids).await?;
    let link = Some(context.api.links(&request).own());
    Ok(Json(BatchStatusesJson { data, link }))
}

/// `POST /batch_statuses`: for more ids than fit into a URL.
#[utoipa::path(
    post, path = "/batch_statuses", tag = "batches", operation_id = "postBatchStatuses", summary = "Statuses of many batches",
    params(StatusParams),
    request_body(content = Vec<String>, content_type = "application/json", description = "Batch ids, at most 1,000"),
    responses(
        (status = 200, description = "The statuses, in the order of the request", body = BatchStatusesJson),
        SawtoothErrors,
    ),
)]
pub(crate) async fn post(
    State(context): State<Arc<StatusContext>>,
    request: Request,
) -> Result<Json<BatchStatusesJson>, ApiError> {
    let (request, body) = request.into_parts();
    let body = context.api.bodies.read(&request.headers, body, IDS_BODY_LIMIT).await?;
    json_content_type(&request.headers).map_err(BatchRequestError::IdsContentType)?;
    let query = Query::parse(request.uri.query())?;
    let ids: Vec<String> =
        serde_json::from_slice(&body.bytes).map_err(|_| BatchRequestError::InvalidIdList)?;
    // Returns the reserved memory before a possible wait.
    drop(body);
    if ids.is_empty() {
        return Err(BatchRequestError::InvalidIdList.into());
    }
    let ids = context.parse_ids(ids.iter().map(String::as_str))?;
    let data = read(&context, Caller::of(&request)?, query.some_params()?, ids).await?;
    Ok(Json(BatchStatusesJson { data, link: None }))
}

impl StatusContext {
    fn parse_ids<'a>(&self, ids: impl Iterator<Item = &'a str>) -> Result<Vec<ItemId>, ApiError> {
        let parse = |text: &str| match &self.format {
            Some(format) => Ok::<_, ApiError>(format.parse_id(text)?),
            None => Ok(text.parse()?),
        };
        let ids: Vec<ItemId> = ids.take(MAX_IDS + 1).map(parse).collect::<Result<_, _>>()?;
        if ids.len() > MAX_IDS {
            return Err(BatchRequestError::TooManyIds { limit: MAX_IDS }.into());
        }
        Ok(ids)
    }
}

async fn read(
    context: &StatusContext,
    caller: &Caller,
    StatusParams { service_id, wait }: StatusParams,
    ids: Vec<ItemId>,
) -> Result<Vec<BatchStatusJson>, ApiError> {
    let service_id: Option<ServiceId> = service_id.as_deref().map(str::parse).transpose()?;
    service_id.as_ref().map_or(Ok(()), |service_id| caller.check(service_id))?;
    let wait = requested_wait(wait.as_deref(), context.api.options.status_wait_limit);
    let query = StatusQuery { ids, service_id, caller: caller.clone() };
    let mut statuses = read_or_wait(context, query, wait).await?;
    if caller.may(GlobalScopeId.service_id()) {
        ask_node(&context.nodes, &mut statuses).await;
    }
    Ok(statuses)
}

/// Has a node report batches that are not stored: clients sent them before, or elsewhere.
async fn ask_node(nodes: &Forwarding, statuses: &mut [BatchStatusJson]) {
    let unknown = statuses.iter().filter(|status| status.is_unknown());
    let ids: Vec<String> = unknown.map(|status| status.id.to_string()).collect();
    let reports = nodes.statuses("/batch_statuses", "id", &ids).await.reports;
    let reports: HashMap<ItemId, BatchStatusJson> = reports
        .into_iter()
        .filter_map(|report| serde_json::from_value(report).ok())
        .map(|status: BatchStatusJson| (status.id, status))
        .collect();
    for status in statuses.iter_mut().filter(|status| status.is_unknown()) {
        if let Some(reported) = reports.get(&status.id) {
            *status = reported.clone();
        }
    }
}
