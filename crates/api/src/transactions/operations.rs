use std::sync::Arc;

use axum::extract::{Request, State};

use super::json::CallJson;
use crate::{
    http::{PathId, Problems},
    state::ActionRequest,
    withdrawals::{OperationAnswer, WithdrawalContext, cancel_one, retry_one, speed_up_one},
};

/// `POST /v1/transactions/{id}/retry`: schedules a failed transaction again.
#[utoipa::path(
    post, path = "/v1/transactions/{id}/retry", tag = "transactions", operation_id = "retryTransaction", summary = "Schedule a failed transaction again",
    params(("id" = String, Path, description = "The transaction")),
    request_body(content = ActionRequest),
    responses(
        (status = 200, description = "The transaction", body = CallJson),
        Problems,
    ),
)]
pub(super) async fn retry(
    State(context): State<Arc<WithdrawalContext>>,
    path: PathId,
    request: Request,
) -> OperationAnswer<CallJson> {
    retry_one(&context, path, request).await
}

/// `POST /v1/transactions/{id}/cancel`: requests that a transaction be cancelled, if it still can be.
#[utoipa::path(
    post, path = "/v1/transactions/{id}/cancel", tag = "transactions", operation_id = "cancelTransaction", summary = "Cancel a transaction, if it still can be",
    params(("id" = String, Path, description = "The transaction")),
    request_body(content = ActionRequest),
    responses(
        (status = 202, description = "The transaction", body = CallJson),
        Problems,
    ),
)]
pub(super) async fn cancel(
    State(context): State<Arc<WithdrawalContext>>,
    path: PathId,
    request: Request,
) -> OperationAnswer<CallJson> {
    cancel_one(&context, path, request).await
}

/// `POST /v1/transactions/{id}/speed-up`: requests that the fees of a transaction that was sent be raised.
#[utoipa::path(
    post, path = "/v1/transactions/{id}/speed-up", tag = "transactions", operation_id = "speedUpTransaction", summary = "Raise the fees of a transaction that is not mined",
    params(("id" = String, Path, description = "The transaction")),
    request_body(content = ActionRequest),
    responses(
        (status = 202, description = "The transaction", body = CallJson),
        Problems,
    ),
)]
pub(super) async fn speed_up(
    State(context): State<Arc<WithdrawalContext>>,
    path: PathId,
    request: Request,
) -> OperationAnswer<CallJson> {
    speed_up_one(&context, path, request).await
}
