use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::operators::{ActionFilter, OperatorVerb};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{context::OperatorContext, json::RecordedJson};
use crate::{
    access::Caller,
    http::{ApiError, PageLimit, PageStart, Problems, Query},
};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ActionsParams {
    /// Only actions of this operator
    actor: Option<String>,
    /// Only this verb
    verb: Option<String>,
    /// Only actions about this service and its batches
    service_id: Option<String>,
    /// Only actions about this batch
    batch_id: Option<String>,
    /// Limit of the items of the page: 1 to 1,000, by default 100
    #[serde(default)]
    #[param(value_type = Option<usize>)]
    limit: PageLimit,
    /// `next` of the page before
    #[param(value_type = Option<String>)]
    after: Option<PageStart<i64>>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ActionsJson {
    data: Vec<RecordedJson>,
    next: Option<String>,
}

/// `GET /v1/operator-actions`: the log, the latest first.
#[utoipa::path(
    get, path = "/v1/operator-actions", tag = "operators", operation_id = "listOperatorActions", summary = "What operators did, the latest first",
    params(ActionsParams),
    responses((status = 200, description = "The page", body = ActionsJson), Problems),
)]
pub(super) async fn get(
    State(context): State<Arc<OperatorContext>>,
    request: Request,
) -> Result<Json<ActionsJson>, ApiError> {
    let (request, _) = request.into_parts();
    let params: ActionsParams = Query::parse(request.uri.query())?.params()?;
    let filter = ActionFilter {
        operator: params.actor,
        verb: params.verb.as_deref().map(parse_verb).transpose()?,
        service_id: params.service_id.as_deref().map(str::parse).transpose()?,
        batch_id: params.batch_id.as_deref().map(str::parse).transpose()?,
    };
    Caller::of(&request)?.check_selected(filter.service_id.as_ref())?;
    let before = params.after.map(|PageStart(id)| id);
    let PageLimit(limit) = params.limit;
    let store = Arc::clone(&context.store);
    let read = move || store.actions(&filter, before, limit).map_err(ApiError::read_failed);
    let actions = context.api.reads.run(read).await?;
    let is_full = actions.len() >= limit;
    let next = actions.last().filter(|_| is_full).map(|last| last.id.to_string());
    Ok(Json(ActionsJson { data: actions.into_iter().map(RecordedJson::from).collect(), next }))
}

pub(super) fn parse_verb(text: &str) -> Result<OperatorVerb, ApiError> {
    let invalid = |error: grid_batch_core::operators::OperatorVerbError| {
        ApiError::invalid_value("verb", error.to_string())
    };
    text.parse().map_err(invalid)
}
