use std::sync::Arc;

use axum::{Json, extract::State};
use grid_batch_core::operators::{ActionFilter, RecordedAction};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{context::OperatorContext, json::RecordedJson};
use crate::{
    access::Caller,
    http::{ApiError, PageJson, PageLimit, PageStart, Params, Problems, VerbName, parse_value},
};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ActionsParams {
    /// Only actions of this operator
    actor: Option<String>,
    /// Only this verb
    #[param(value_type = Option<VerbName>)]
    verb: Option<String>,
    /// Only actions about this service and its batches
    service_id: Option<String>,
    /// Only actions about this batch
    batch_id: Option<String>,
    /// Limit of the items of the page: 1 to 1,000, by default 100
    #[param(value_type = Option<usize>, minimum = 1, maximum = 1_000)]
    limit: PageLimit,
    /// `next` of the page before
    #[param(value_type = Option<String>)]
    after: Option<PageStart>,
}

/// `GET /v1/operator-actions`: the log, the latest first.
#[utoipa::path(
    get, path = "/v1/operator-actions", tag = "operators", operation_id = "listOperatorActions", summary = "What operators did, the latest first",
    params(ActionsParams),
    responses((status = 200, description = "The page", body = PageJson<RecordedJson>), Problems),
)]
pub(super) async fn get(
    State(context): State<Arc<OperatorContext>>,
    Params(params): Params<ActionsParams>,
    caller: Caller,
) -> Result<Json<PageJson<RecordedJson>>, ApiError> {
    let filter = ActionFilter {
        operator: params.actor,
        verb: params.verb.as_deref().map(|verb| parse_value("verb", verb)).transpose()?,
        service_id: params.service_id.as_deref().map(str::parse).transpose()?,
        batch_id: params.batch_id.as_deref().map(str::parse).transpose()?,
    };
    caller.check_selected(filter.service_id.as_ref())?;
    let before: Option<i64> = params.after.map(PageStart::cursor).transpose()?;
    let limit = params.limit;
    let read = context.store.read(move |store| store.actions(&filter, before, limit.0 + 1));
    let cursor = |last: &RecordedAction| last.id.to_string();
    Ok(Json(PageJson::cut(read.await?, limit, cursor, RecordedJson::new)))
}
