use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_withdrawals::WithdrawalId;

use crate::{
    http::{ApiError, PathId, SawtoothErrors, parse_path_id},
    withdrawals::{
        WithdrawalRequestError,
        context::WithdrawalContext,
        json::{WithdrawalJson, withdrawal_json},
    },
};

/// `GET /withdrawals/{id}`.
#[utoipa::path(
    get, path = "/withdrawals/{id}", tag = "withdrawals", operation_id = "getWithdrawal", summary = "Read a withdrawal",
    params(
        ("id" = String, Path, description = "The withdrawal"),
    ),
    responses(
        (status = 200, description = "The withdrawal", body = WithdrawalJson),
        SawtoothErrors,
    ),
)]
pub(crate) async fn get(
    State(context): State<Arc<WithdrawalContext>>,
    path: PathId,
    request: Request,
) -> Result<Json<WithdrawalJson>, ApiError> {
    let id: WithdrawalId = parse_path_id(path)?;
    let (request, _) = request.into_parts();
    let store = Arc::clone(&context.store);
    let read = move || store.withdrawal(&id).map_err(ApiError::read_failed);
    let details =
        context.api.reads.run(read).await?.ok_or(WithdrawalRequestError::WithdrawalNotFound(id))?;
    Ok(Json(withdrawal_json(&context, &request, details)))
}
