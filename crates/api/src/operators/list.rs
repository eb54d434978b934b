use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::{ActionFilter, OperatorVerb};
use serde::Serialize;
use utoipa::ToSchema;

use super::{context::OperatorContext, json::RecordedJson};
use crate::{
    access::Caller,
    http::{
        ApiError, Problems, Query,
        page_query::{after, limit},
    },
};

const PARAMETERS: &[&str] = &["actor", "verb", "service_id", "batch_id", "limit", "after"];

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ActionsJson {
    data: Vec<RecordedJson>,
    next: Option<String>,
}

/// `GET /v1/operator-actions`: the log, the latest first.
#[utoipa::path(
    get, path = "/v1/operator-actions", tag = "operators", operation_id = "listOperatorActions", summary = "What operators did, the latest first",
    params(
        ("actor" = Option<String>, Query, description = "Only actions of this operator"),
        ("verb" = Option<String>, Query, description = "Only this verb"),
        ("service_id" = Option<String>, Query, description = "Only actions about this service and its batches"),
        ("batch_id" = Option<String>, Query, description = "Only actions about this batch"),
        ("limit" = Option<usize>, Query, description = "The most items of the page: 1 to 1,000, by default 100"),
        ("after" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses((status = 200, description = "The page", body = ActionsJson), Problems),
)]
pub(super) async fn get(
    State(context): State<Arc<OperatorContext>>,
    request: Request,
) -> Result<Json<ActionsJson>, ApiError> {
    let (request, _) = request.into_parts();
    let query = Query::parse(request.uri.query())?;
    query.check_names(PARAMETERS)?;
    let filter = ActionFilter {
        operator: query.text("actor")?.map(str::to_owned),
        verb: query.get("verb")?.map(parse_verb).transpose()?,
        service_id: query.service_id()?,
        batch_id: query.get("batch_id")?.map(str::parse).transpose()?,
    };
    Caller::of(&request)?.check_selected(filter.service_id.as_ref())?;
    let (before, limit) = (after::<i64>(&query)?, limit(&query)?);
    let store = Arc::clone(&context.store);
    let read = move || store.actions(&filter, before, limit).map_err(ApiError::read_failed);
    let actions = context.api.reads.run(read).await?;
    let is_full = actions.len() >= limit;
    let next = actions.last().filter(|_| is_full).map(|last| last.id.to_string());
    Ok(Json(ActionsJson { data: actions.into_iter().map(RecordedJson::from).collect(), next }))
}

pub(super) fn parse_verb(text: &str) -> Result<OperatorVerb, ApiError> {
    let invalid = |error: grid_batch_core::OperatorVerbError| {
        ApiError::invalid_value("verb", error.to_string())
    };
    text.parse().map_err(invalid)
}
