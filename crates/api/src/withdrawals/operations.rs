use std::{slice, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use grid_batch_core::operators::OperatorRequest;
use grid_batch_withdrawals::{
    CancelOutcome, RetryOutcome, WithdrawalDetails, WithdrawalId, WithdrawalStore,
};

use crate::{
    http::{ApiError, PathId, SawtoothErrors, parse_path_id},
    state::ActionRequest,
    withdrawals::{WithdrawalRequestError, context::WithdrawalContext, json::WithdrawalJson},
};

type WithdrawalAnswer = Result<(StatusCode, Json<WithdrawalJson>), ApiError>;

/// `POST /withdrawals/{id}/retry`: schedules a failed withdrawal again.
#[utoipa::path(
    post, path = "/withdrawals/{id}/retry", tag = "withdrawals", operation_id = "retryWithdrawal", summary = "Schedule a failed withdrawal again",
    params(("id" = String, Path, description = "The withdrawal")),
    request_body(content = ActionRequest),
    responses(
        (status = 200, description = "The withdrawal", body = WithdrawalJson),
        SawtoothErrors,
    ),
)]
pub(crate) async fn retry(
    State(context): State<Arc<WithdrawalContext>>,
    path: PathId,
    request: Request,
) -> WithdrawalAnswer {
    Ok((StatusCode::OK, act(&context, path, request, write_retry).await?))
}

/// `POST /withdrawals/{id}/cancel`: requests that a withdrawal be cancelled, if it still can be.
#[utoipa::path(
    post, path = "/withdrawals/{id}/cancel", tag = "withdrawals", operation_id = "cancelWithdrawal", summary = "Cancel a withdrawal, if it still can be",
    params(("id" = String, Path, description = "The withdrawal")),
    request_body(content = ActionRequest),
    responses(
        (status = 202, description = "The withdrawal", body = WithdrawalJson),
        SawtoothErrors,
    ),
)]
pub(crate) async fn cancel(
    State(context): State<Arc<WithdrawalContext>>,
    path: PathId,
    request: Request,
) -> WithdrawalAnswer {
    Ok((StatusCode::ACCEPTED, act(&context, path, request, write_cancellation).await?))
}

type Write = fn(&dyn WithdrawalStore, &WithdrawalId, &OperatorRequest) -> Result<(), ApiError>;

/// Does it, and wakes the queue of the withdrawal's service. Returns the withdrawal as it is then.
async fn act(
    context: &Arc<WithdrawalContext>,
    path: PathId,
    request: Request,
    write: Write,
) -> Result<Json<WithdrawalJson>, ApiError> {
    let id = parse_path_id(path)?;
    let (request, body): (_, ActionRequest) = context.read_json(request).await?;
    let asked = context.api.actors.request(&request, body.reason, body.dry_run)?;
    let (store, stored) = (Arc::clone(&context.store.store), context.stored.clone());
    let work = move || {
        write(&*store, &id, &asked)?;
        let details = read(&*store, &id)?;
        if !asked.dry_run {
            // A delayed withdrawal is cancelled at once.
            stored.notify(slice::from_ref(&details.withdrawal.service_id));
        }
        Ok(details)
    };
    let details = context.store.writes.run(work).await?;
    Ok(Json(WithdrawalJson::new(&details, &context.api.links(&request))))
}

fn write_retry(
    store: &dyn WithdrawalStore,
    id: &WithdrawalId,
    asked: &OperatorRequest,
) -> Result<(), ApiError> {
    match store.retry_withdrawal(id, asked).map_err(ApiError::write_failed)? {
        RetryOutcome::Scheduled { .. } => Ok(()),
        RetryOutcome::NotFailed { state } => {
            Err(WithdrawalRequestError::NotFailed { state: state.as_str() }.into())
        }
        RetryOutcome::PaymentLimit(error) => Err(error.into()),
        RetryOutcome::NotFound => Err(WithdrawalRequestError::WithdrawalNotFound(*id).into()),
    }
}

fn write_cancellation(
    store: &dyn WithdrawalStore,
    id: &WithdrawalId,
    asked: &OperatorRequest,
) -> Result<(), ApiError> {
    match store.cancel_withdrawal(id, asked).map_err(ApiError::write_failed)? {
        CancelOutcome::Requested { .. } => Ok(()),
        CancelOutcome::AlreadyEnded { state } => {
            Err(WithdrawalRequestError::AlreadyEnded { state: state.as_str() }.into())
        }
        CancelOutcome::NotFound => Err(WithdrawalRequestError::WithdrawalNotFound(*id).into()),
    }
}

fn read(store: &dyn WithdrawalStore, id: &WithdrawalId) -> Result<WithdrawalDetails, ApiError> {
    let details = store.withdrawal(id).map_err(ApiError::write_failed)?;
    Ok(details.ok_or(WithdrawalRequestError::WithdrawalNotFound(*id))?)
}
