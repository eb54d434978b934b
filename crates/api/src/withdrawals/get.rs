use std::sync::Arc;

use axum::{Json, extract::State, http::request::Parts};
use grid_batch_withdrawals::WithdrawalId;

use crate::{
    http::{ApiError, PathId, WithdrawalProblems, parse_path_id},
    withdrawals::{QueuedJson, WithdrawalContext, WithdrawalJson},
};

/// `GET /withdrawals/{id}`.
#[utoipa::path(
    get, path = "/withdrawals/{id}", tag = "withdrawals", operation_id = "getWithdrawal", summary = "Read a withdrawal",
    params(("id" = String, Path, description = "The withdrawal")),
    responses(
        (status = 200, description = "The withdrawal", body = WithdrawalJson),
        WithdrawalProblems,
    ),
)]
pub(crate) async fn get(
    State(context): State<Arc<WithdrawalContext>>,
    path: PathId,
    request: Parts,
) -> Result<Json<WithdrawalJson>, ApiError> {
    read_one(&context, path, &request).await
}

/// The one whose id the path has, if it is of this kind.
pub(crate) async fn read_one<J: QueuedJson>(
    context: &WithdrawalContext,
    path: PathId,
    request: &Parts,
) -> Result<Json<J>, ApiError> {
    let id: WithdrawalId = parse_path_id(path)?;
    let details = context.store.read(move |store| store.withdrawal(&id)).await?;
    let details = details.ok_or_else(|| J::KIND.not_found(id))?;
    context.json(&details, &context.api.links(request)).map(Json)
}
