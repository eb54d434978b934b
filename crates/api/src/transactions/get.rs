use std::sync::Arc;

use axum::{Json, extract::State, http::request::Parts};

use super::json::CallJson;
use crate::{
    http::{ApiError, NoParams, PathId, Problems, read_params},
    withdrawals::{WithdrawalContext, read_one},
};

/// `GET /v1/transactions/{id}`.
#[utoipa::path(
    get, path = "/v1/transactions/{id}", tag = "transactions", operation_id = "getTransaction", summary = "Read a transaction",
    params(("id" = String, Path, description = "The transaction")),
    responses(
        (status = 200, description = "The transaction", body = CallJson),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<WithdrawalContext>>,
    path: PathId,
    request: Parts,
) -> Result<Json<CallJson>, ApiError> {
    let NoParams {} = read_params(&request)?;
    read_one(&context, path, &request).await
}
