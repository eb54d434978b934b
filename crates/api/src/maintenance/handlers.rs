use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::operators::OperatorRequest;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    GasAdminMoves, InDoubtReport, LedgerBinding, Maintenance, MaintenanceContext, MaintenanceError,
};
use crate::http::{ApiError, JsonObject, Problems, Query, Refusal, Refused};

/// The body of `POST /v1/database/restored`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the body")]
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

/// The body of a decision about the database.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the body")]
struct MaintenanceRequest {
    /// Why, for the log.
    reason: String,
    /// Says what would change, and changes nothing.
    dry_run: Option<bool>,
}

/// By gas admin.
#[derive(Serialize, ToSchema)]
pub(super) struct MovesJson {
    data: Vec<GasAdminMoves>,
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
    let known = &["reason", "dry_run", "nothing_lost", "even_if_running"];
    let (asked, mut fields) = read(&context, request, known).await?;
    let nothing_lost = fields.boolean("nothing_lost", false)?;
    let even_if_running = fields.boolean("even_if_running", false)?;
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
    request: Request,
) -> Result<Json<LedgerBinding>, ApiError> {
    Query::parse(request.uri().query())?.refuse_all()?;
    run(&context, |maintenance| maintenance.ledger()).await.map(Json)
}

/// `POST /v1/database/adopt-ledger`.
#[utoipa::path(
    post, path = "/v1/database/adopt-ledger", tag = "operators", operation_id = "adoptLedger",
    summary = "Bind the database to the ledger of the nodes",
    request_body(content = MaintenanceRequest),
    responses((status = 200, description = "The ledgers, and what changed or would", body = LedgerBinding), Problems),
)]
pub(super) async fn adopt_ledger(
    State(context): State<Arc<MaintenanceContext>>,
    request: Request,
) -> Result<Json<LedgerBinding>, ApiError> {
    let (asked, _) = read(&context, request, &["reason", "dry_run"]).await?;
    run(&context, move |maintenance| maintenance.adopt_ledger(&asked)).await.map(Json)
}

/// `POST /v1/database/move-withdrawals`.
#[utoipa::path(
    post, path = "/v1/database/move-withdrawals", tag = "operators", operation_id = "moveWithdrawals",
    summary = "Move open withdrawals to the present gas admins of their pools",
    request_body(content = MaintenanceRequest),
    responses((status = 200, description = "What was moved, or can be", body = MovesJson), Problems),
)]
pub(super) async fn move_withdrawals(
    State(context): State<Arc<MaintenanceContext>>,
    request: Request,
) -> Result<Json<MovesJson>, ApiError> {
    let (asked, _) = read(&context, request, &["reason", "dry_run"]).await?;
    let data = run(&context, move |maintenance| maintenance.move_withdrawals(&asked)).await?;
    Ok(Json(MovesJson { data }))
}

async fn read(
    context: &MaintenanceContext,
    request: Request,
    known: &'static [&'static str],
) -> Result<(OperatorRequest, JsonObject), ApiError> {
    let (request, mut fields) = context.api.read_json(request, known).await?;
    Query::parse(request.uri.query())?.refuse_all()?;
    let asked = context.api.actors.take_request(&request, &mut fields)?;
    Ok((asked, fields))
}

pub(super) async fn run<T: Send + 'static>(
    context: &MaintenanceContext,
    work: impl FnOnce(&dyn Maintenance) -> Result<T, MaintenanceError> + Send + 'static,
) -> Result<T, ApiError> {
    let maintenance = Arc::clone(&context.maintenance);
    let failed = |error| match error {
        MaintenanceError::Refused(reason) => MaintenanceRefused(reason).into(),
        MaintenanceError::Failed(error) => ApiError::write_failed(error),
    };
    context.writes.run(move || work(&*maintenance).map_err(failed)).await
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
struct MaintenanceRefused(String);

impl Refused for MaintenanceRefused {
    fn refusal(&self) -> Refusal {
        Refusal::ACTION_REFUSED
    }
}
