use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Request, State},
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    GasAdminMoves, InDoubtReport, LedgerBinding, Maintenance, MaintenanceContext, MaintenanceError,
    RetentionReport,
};
use crate::{
    http::{ApiError, NoParams, PageJson, Params, Problems, Refusal, Refused, read_params},
    state::{ActionRequest, action_bodies},
};

/// The body of `POST /v1/database/restored`.
#[derive(Deserialize, ToSchema)]
struct RestoredRequest {
    /// Why, for the log.
    reason: String,
    /// Says what would change, and changes nothing.
    dry_run: Option<bool>,
    /// The database was moved with every commit: puts nothing in doubt.
    nothing_lost: Option<bool>,
    /// Is not refused while instances run.
    even_if_running: Option<bool>,
}

action_bodies!(RestoredRequest);

/// The body of `POST /v1/database/remove-ended`.
#[derive(Deserialize, ToSchema)]
struct RetentionRequest {
    /// How long ago the batches ended; default: `retention.after`.
    older_than_seconds: Option<u32>,
    /// Says what would be removed, and removes nothing.
    dry_run: Option<bool>,
}

/// `POST /v1/database/restored`.
#[utoipa::path(
    post, path = "/v1/database/restored", tag = "operators", operation_id = "databaseWasRestored",
    summary = "Put every open batch in doubt, because the database lost its latest commits",
    request_body(content = RestoredRequest),
    responses((status = 200, description = "What is in doubt, or would be", body = InDoubtReport), Problems),
)]
pub(super) async fn restored(
    State(context): State<Arc<MaintenanceContext>>,
    request: Request,
) -> Result<Json<InDoubtReport>, ApiError> {
    let (asked, body, NoParams {}) = context.api.read_action(request).await?;
    let RestoredRequest { nothing_lost, even_if_running, .. } = body;
    let nothing_lost = nothing_lost.unwrap_or(false);
    let even_if_running = even_if_running.unwrap_or(false);
    if nothing_lost && even_if_running {
        let rule = "it is given with nothing_lost, which needs stopped instances";
        return Err(ApiError::invalid_value("even_if_running", rule));
    }
    let work = move |maintenance: &dyn Maintenance| {
        if nothing_lost {
            maintenance.moved(&asked)
        } else {
            maintenance.restored(even_if_running, &asked)
        }
    };
    run(&context, work).await.map(Json)
}

/// `GET /v1/database/ledger`.
#[utoipa::path(
    get, path = "/v1/database/ledger", tag = "operators", operation_id = "getLedgerOfDatabase",
    summary = "The ledger of the database, and what its nodes tell now",
    responses((status = 200, description = "The ledgers", body = LedgerBinding), Problems),
)]
pub(super) async fn ledger(
    State(context): State<Arc<MaintenanceContext>>,
    _: Params<NoParams>,
) -> Result<Json<LedgerBinding>, ApiError> {
    run(&context, |maintenance| maintenance.ledger()).await.map(Json)
}

/// `POST /v1/database/adopt-ledger`.
#[utoipa::path(
    post, path = "/v1/database/adopt-ledger", tag = "operators", operation_id = "adoptLedger",
    summary = "Bind the database to the ledger of the nodes",
    request_body(content = ActionRequest),
    responses((status = 200, description = "The ledgers, and what changed or would", body = LedgerBinding), Problems),
)]
pub(super) async fn adopt_ledger(
    State(context): State<Arc<MaintenanceContext>>,
    request: Request,
) -> Result<Json<LedgerBinding>, ApiError> {
    let (asked, ActionRequest { .. }, NoParams {}) = context.api.read_action(request).await?;
    run(&context, move |maintenance| maintenance.adopt_ledger(&asked)).await.map(Json)
}

/// `POST /v1/database/move-withdrawals`.
#[utoipa::path(
    post, path = "/v1/database/move-withdrawals", tag = "operators", operation_id = "moveWithdrawals",
    summary = "Move open withdrawals to the present gas admins of their pools",
    request_body(content = ActionRequest),
    responses((status = 200, description = "What was moved, or can be, by gas admin", body = PageJson<GasAdminMoves>), Problems),
)]
pub(super) async fn move_withdrawals(
    State(context): State<Arc<MaintenanceContext>>,
    request: Request,
) -> Result<Json<PageJson<GasAdminMoves>>, ApiError> {
    let (asked, ActionRequest { .. }, NoParams {}) = context.api.read_action(request).await?;
    let data = run(&context, move |maintenance| maintenance.move_withdrawals(&asked)).await?;
    Ok(Json(PageJson { data, next: None }))
}

/// `POST /v1/database/remove-ended`.
#[utoipa::path(
    post, path = "/v1/database/remove-ended", tag = "operators", operation_id = "removeEndedBatches",
    summary = "Remove batches that ended long ago",
    request_body(content = RetentionRequest),
    responses((status = 200, description = "What was removed, or would be", body = RetentionReport), Problems),
)]
pub(super) async fn remove_ended(
    State(context): State<Arc<MaintenanceContext>>,
    request: Request,
) -> Result<Json<RetentionReport>, ApiError> {
    let (request, body): (_, RetentionRequest) = context.api.read_json(request).await?;
    let NoParams {} = read_params(&request)?;
    let older_than = body.older_than_seconds.map(|seconds| Duration::from_secs(seconds.into()));
    let dry_run = body.dry_run.unwrap_or(false);
    run(&context, move |maintenance| maintenance.remove_ended(older_than, dry_run)).await.map(Json)
}

async fn run<T: Send + 'static>(
    context: &MaintenanceContext,
    work: impl FnOnce(&dyn Maintenance) -> Result<T, MaintenanceError> + Send + 'static,
) -> Result<T, ApiError> {
    let maintenance = Arc::clone(&context.store.store);
    let failed = |error| match error {
        MaintenanceError::Failed(error) => ApiError::write_failed(error),
        refused => refused.into(),
    };
    context.store.writes.run(move || work(&*maintenance).map_err(failed)).await
}

impl Refused for MaintenanceError {
    fn refusal(&self) -> Refusal {
        Refusal::ACTION_REFUSED
    }
}
