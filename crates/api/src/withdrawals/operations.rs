use std::{slice, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, request::Parts},
};
use grid_batch_core::operators::OperatorRequest;
use grid_batch_withdrawals::{
    CancelOutcome, RetryOutcome, WithdrawalDetails, WithdrawalId, WithdrawalStore,
};
use utoipa::ToSchema;

use crate::{
    http::{ApiError, PathId, SawtoothErrors, parse_path_id},
    withdrawals::{
        WithdrawalRequestError,
        context::WithdrawalContext,
        json::{WithdrawalJson, withdrawal_json},
    },
};

const FIELDS: &[&str] = &["reason", "dry_run"];

/// The body of a request to retry or cancel a withdrawal.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the body")]
struct WithdrawalActionRequest {
    /// Why, for the log.
    reason: String,
    /// Changes nothing, and says whether it would be refused.
    dry_run: Option<bool>,
}

type WithdrawalAnswer = Result<(StatusCode, Json<WithdrawalJson>), ApiError>;

/// `POST /withdrawals/{id}/retry`: schedules a failed withdrawal again.
#[utoipa::path(
    post, path = "/withdrawals/{id}/retry", tag = "withdrawals", operation_id = "retryWithdrawal", summary = "Schedule a failed withdrawal again",
    params(
        ("id" = String, Path, description = "The withdrawal"),
    ),
    request_body(content = WithdrawalActionRequest),
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
    let (request, details) = act(&context, path, request, write_retry).await?;
    Ok((StatusCode::OK, Json(withdrawal_json(&context, &request, details))))
}

/// `POST /withdrawals/{id}/cancel`: requests that a withdrawal be cancelled, if it still can be.
#[utoipa::path(
    post, path = "/withdrawals/{id}/cancel", tag = "withdrawals", operation_id = "cancelWithdrawal", summary = "Cancel a withdrawal, if it still can be",
    params(
        ("id" = String, Path, description = "The withdrawal"),
    ),
    request_body(content = WithdrawalActionRequest),
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
    let (request, details) = act(&context, path, request, write_cancellation).await?;
    Ok((StatusCode::ACCEPTED, Json(withdrawal_json(&context, &request, details))))
}

type Write = fn(&dyn WithdrawalStore, &WithdrawalId, &OperatorRequest) -> Result<(), ApiError>;

/// Does it, and wakes the queue of the withdrawal's service. Returns the withdrawal as it is then.
async fn act(
    context: &Arc<WithdrawalContext>,
    path: PathId,
    request: Request,
    write: Write,
) -> Result<(Parts, WithdrawalDetails), ApiError> {
    let (request, mut fields) = context.read_json(request, FIELDS).await?;
    let id = parse_path_id(path)?;
    let asked = context.api.actors.take_request(&request, &mut fields)?;
    let (store, stored) = (Arc::clone(&context.store), context.stored.clone());
    let work = move || {
        write(&*store, &id, &asked)?;
        let details = read(&*store, &id)?;
        if !asked.dry_run {
            // A delayed withdrawal is cancelled at once.
            stored.notify(slice::from_ref(&details.withdrawal.service_id));
        }
        Ok(details)
    };
    let details = context.writes.run(work).await?;
    Ok((request, details))
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
