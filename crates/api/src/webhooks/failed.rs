use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Request, State, rejection::PathRejection},
};
use grid_batch_core::webhooks::FailedDeliveryId;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{WebhookContext, json::FailedMessageJson, parse_id};
use crate::{
    http::{ApiError, PageLimit, PageStart, Problems, Query},
    webhooks::WebhookRequestError,
};

/// The messages that were given up.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FailedPageJson {
    data: Vec<FailedMessageJson>,
    /// The `after` of the next page; null: there is none.
    next: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct FailedParams {
    /// Limit of the items of the page: 1 to 1,000, by default 100
    #[serde(default)]
    #[param(value_type = Option<usize>)]
    limit: PageLimit,
    /// `next` of the page before
    #[param(value_type = Option<String>)]
    after: Option<PageStart<i64>>,
}

/// `GET /v1/webhooks/{id}/failed`.
#[utoipa::path(
    get, path = "/v1/webhooks/{id}/failed", tag = "webhooks", operation_id = "listFailedDeliveries", summary = "List the messages that were given up",
    params(
        ("id" = String, Path, description = "The webhook"),
        FailedParams,
    ),
    responses(
        (status = 200, description = "A page of them, the oldest first", body = FailedPageJson),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<WebhookContext>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<FailedPageJson>, ApiError> {
    let id = parse_id(path)?;
    let (request, _) = request.into_parts();
    let params: FailedParams = Query::parse(request.uri.query())?.params()?;
    let after = params.after.map(|PageStart(id)| FailedDeliveryId(id));
    let PageLimit(limit) = params.limit;
    let page = context.read(move |store| store.failed_deliveries(id, after, limit + 1)).await?;
    let mut page = page.ok_or(WebhookRequestError::WebhookNotFound)?;
    let next = params.limit.cut(&mut page).map(|last| last.id.to_string());
    Ok(Json(FailedPageJson { data: page.into_iter().map(FailedMessageJson::from).collect(), next }))
}
