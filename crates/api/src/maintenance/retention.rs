use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Request, State},
};
use utoipa::ToSchema;

use super::{MaintenanceContext, RetentionReport, handlers::run};
use crate::http::{ApiError, Problems, Query};

/// The body of `POST /v1/database/remove-ended`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the body")]
struct RetentionRequest {
    /// How long ago the batches ended; default: `retention.after`.
    older_than_seconds: Option<u32>,
    /// Says what would be removed, and removes nothing.
    dry_run: Option<bool>,
}

/// `POST /v1/database/remove-ended`.
#[utoipa::path(
    post, path = "/v1/database/remove-ended", tag = "operators", operation_id = "removeEndedBatches",
    summary = "Remove batches that ended long ago",
    request_body(content = RetentionRequest),
    responses((status = 200, description = "What was removed, or would be", body = RetentionReport), Problems),
)]
pub(super) async fn post(
    State(context): State<Arc<MaintenanceContext>>,
    request: Request,
) -> Result<Json<RetentionReport>, ApiError> {
    let known = &["older_than_seconds", "dry_run"];
    let (request, mut fields) = context.api.read_json(request, known).await?;
    Query::parse(request.uri.query())?.refuse_all()?;
    let older_than = fields.optional_u32("older_than_seconds")?;
    let older_than = older_than.map(|seconds| Duration::from_secs(seconds.into()));
    let dry_run = fields.boolean("dry_run", false)?;
    run(&context, move |maintenance| maintenance.remove_ended(older_than, dry_run)).await.map(Json)
}
