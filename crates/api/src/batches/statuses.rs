use std::{collections::HashMap, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::{GlobalScopeId, ItemId, ScopeId};

use crate::{
    access::Caller,
    batches::{
        BatchRequestError,
        status_json::{BatchStatusJson, BatchStatusesJson},
        status_query::{StatusContext, StatusQuery},
        status_wait::{read_or_wait, requested_wait},
    },
    http::{ApiError, Query, SawtoothErrors, json_content_type, link},
    pass_through::Forwarding,
};

/// The most ids in one request.
const MAX_IDS: usize = 1_000;
/// The longest body with ids: twice what `MAX_IDS` ids take.
const IDS_BODY_LIMIT: usize = 256 * 1024;

/// `GET /batch_statuses`.
#[utoipa::path(
    get, path = "/batch_statuses", tag = "batches", operation_id = "getBatchStatuses", summary = "Statuses of batches",
    params(
        ("id" = String, Query, description = "Batch ids, separated by commas"),
        ("service_id" = Option<String>, Query, description = "The service, if the batch is stored for several"),
        ("wait" = Option<String>, Query, description = "Wait up to so many seconds until no batch is pending; 0 and anything that is not a number stand for the longest wait"),
    ),
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
    let ids =
        query.get("id")?.filter(|ids| !ids.is_empty()).ok_or(BatchRequestError::MissingIds)?;
    let data =
        read(&context, Caller::of(&request)?, &query, context.parse_ids(ids.split(','))?).await?;
    let link = Some(link::to_request(&request, context.api.local_addr));
    Ok(Json(BatchStatusesJson { data, link }))
}

/// `POST /batch_statuses`: for more ids than fit into a URL.
#[utoipa::path(
    post, path = "/batch_statuses", tag = "batches", operation_id = "postBatchStatuses", summary = "Statuses of many batches",
    params(
        ("service_id" = Option<String>, Query, description = "The service, if the batch is stored for several"),
        ("wait" = Option<String>, Query, description = "Wait up to so many seconds until no batch is pending; 0 and anything that is not a number stand for the longest wait"),
    ),
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
    let data = read(
        &context,
        Caller::of(&request)?,
        &query,
        context.parse_ids(ids.iter().map(String::as_str))?,
    )
    .await?;
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
    query: &Query,
    ids: Vec<ItemId>,
) -> Result<Vec<BatchStatusJson>, ApiError> {
    let service_id = query.service_id()?;
    service_id.as_ref().map_or(Ok(()), |service_id| caller.check(service_id))?;
    let wait = requested_wait(query.get("wait")?, context.api.options.status_wait_limit);
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
