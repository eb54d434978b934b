use std::{slice, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use grid_batch_withdrawals::{
    CancelOutcome, RetryOutcome, WithdrawalDetails, WithdrawalId, WithdrawalStore,
};

use crate::{
    http::{ApiError, PathId, SawtoothErrors, parse_path_id},
    state::StoredCallback,
    withdrawals::{
        WithdrawalRequestError,
        context::WithdrawalContext,
        json::{WithdrawalJson, withdrawal_json},
    },
};

type WithdrawalAnswer = Result<(StatusCode, Json<WithdrawalJson>), ApiError>;

/// `POST /withdrawals/{id}/retry`: schedules a failed withdrawal again.
#[utoipa::path(
    post, path = "/withdrawals/{id}/retry", tag = "withdrawals", operation_id = "retryWithdrawal", summary = "Schedule a failed withdrawal again",
    params(
        ("id" = String, Path, description = "The withdrawal"),
    ),
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
    let (request, _) = context.read_json(request, &[]).await?;
    let id = parse_path_id(path)?;
    let (store, stored) = (Arc::clone(&context.store), context.stored.clone());
    let details = context.writes.run(move || write_retry(&*store, &stored, &id)).await?;
    Ok((StatusCode::OK, Json(withdrawal_json(&context, &request, details))))
}

/// `POST /withdrawals/{id}/cancel`: requests that a withdrawal be cancelled, if it still can be.
#[utoipa::path(
    post, path = "/withdrawals/{id}/cancel", tag = "withdrawals", operation_id = "cancelWithdrawal", summary = "Cancel a withdrawal, if it still can be",
    params(
        ("id" = String, Path, description = "The withdrawal"),
    ),
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
    let (request, _) = context.read_json(request, &[]).await?;
    let id = parse_path_id(path)?;
    let (store, stored) = (Arc::clone(&context.store), context.stored.clone());
    let details = context.writes.run(move || write_cancellation(&*store, &stored, &id)).await?;
    Ok((StatusCode::ACCEPTED, Json(withdrawal_json(&context, &request, details))))
}

fn write_retry(
    store: &dyn WithdrawalStore,
    stored: &StoredCallback,
    id: &WithdrawalId,
) -> Result<WithdrawalDetails, ApiError> {
    match store.retry_withdrawal(id).map_err(ApiError::write_failed)? {
        RetryOutcome::Scheduled { .. } => {
            let details = read(store, id)?;
            stored.notify(slice::from_ref(&details.withdrawal.service_id));
            Ok(details)
        }
        RetryOutcome::NotFailed { state } => {
            Err(WithdrawalRequestError::NotFailed { state: state.as_str() }.into())
        }
        RetryOutcome::PaymentLimit(error) => Err(error.into()),
        RetryOutcome::NotFound => Err(WithdrawalRequestError::WithdrawalNotFound(*id).into()),
    }
}

fn write_cancellation(
    store: &dyn WithdrawalStore,
    stored: &StoredCallback,
    id: &WithdrawalId,
) -> Result<WithdrawalDetails, ApiError> {
    match store.cancel_withdrawal(id).map_err(ApiError::write_failed)? {
        CancelOutcome::Requested { .. } => {
            let details = read(store, id)?;
            // A delayed withdrawal is cancelled at once.
            stored.notify(slice::from_ref(&details.withdrawal.service_id));
            Ok(details)
        }
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
