use std::{slice, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use grid_batch_core::operators::OperatorRequest;
use grid_batch_withdrawals::{
    CancelOutcome, RetryOutcome, SpeedUpOutcome, WithdrawalDetails, WithdrawalId, WithdrawalStore,
};

use crate::{
    http::{ApiError, PathId, WithdrawalProblems, parse_path_id},
    state::ActionRequest,
    withdrawals::{Queued, QueuedJson, WithdrawalContext, WithdrawalJson, WithdrawalRequestError},
};

/// The answer to an operation on one of a kind.
pub(crate) type OperationAnswer<J> = Result<(StatusCode, Json<J>), ApiError>;

/// `POST /withdrawals/{id}/retry`: schedules a failed withdrawal again.
#[utoipa::path(
    post, path = "/withdrawals/{id}/retry", tag = "withdrawals", operation_id = "retryWithdrawal", summary = "Schedule a failed withdrawal again",
    params(("id" = String, Path, description = "The withdrawal")),
    request_body(content = ActionRequest),
    responses(
        (status = 200, description = "The withdrawal", body = WithdrawalJson),
        WithdrawalProblems,
    ),
)]
pub(crate) async fn retry(
    State(context): State<Arc<WithdrawalContext>>,
    path: PathId,
    request: Request,
) -> OperationAnswer<WithdrawalJson> {
    retry_one(&context, path, request).await
}

/// `POST /withdrawals/{id}/cancel`: requests that a withdrawal be cancelled, if it still can be.
#[utoipa::path(
    post, path = "/withdrawals/{id}/cancel", tag = "withdrawals", operation_id = "cancelWithdrawal", summary = "Cancel a withdrawal, if it still can be",
    params(("id" = String, Path, description = "The withdrawal")),
    request_body(content = ActionRequest),
    responses(
        (status = 202, description = "The withdrawal", body = WithdrawalJson),
        WithdrawalProblems,
    ),
)]
pub(crate) async fn cancel(
    State(context): State<Arc<WithdrawalContext>>,
    path: PathId,
    request: Request,
) -> OperationAnswer<WithdrawalJson> {
    cancel_one(&context, path, request).await
}

/// Schedules a failed one of this kind again.
pub(crate) async fn retry_one<J: QueuedJson>(
    context: &WithdrawalContext,
    path: PathId,
    request: Request,
) -> OperationAnswer<J> {
    Ok((StatusCode::OK, act(context, path, request, write_retry).await?))
}

/// Requests that one of this kind be cancelled.
pub(crate) async fn cancel_one<J: QueuedJson>(
    context: &WithdrawalContext,
    path: PathId,
    request: Request,
) -> OperationAnswer<J> {
    Ok((StatusCode::ACCEPTED, act(context, path, request, write_cancellation).await?))
}

/// Requests that the fees of one of this kind be raised.
pub(crate) async fn speed_up_one<J: QueuedJson>(
    context: &WithdrawalContext,
    path: PathId,
    request: Request,
) -> OperationAnswer<J> {
    Ok((StatusCode::ACCEPTED, act(context, path, request, write_speed_up).await?))
}

type Write =
    fn(&dyn WithdrawalStore, Queued, &WithdrawalId, &OperatorRequest) -> Result<(), ApiError>;

/// Does it, and wakes the queue of the service. Returns what is stored then.
async fn act<J: QueuedJson>(
    context: &WithdrawalContext,
    path: PathId,
    request: Request,
    write: Write,
) -> Result<Json<J>, ApiError> {
    let id = parse_path_id(path)?;
    let (request, body): (_, ActionRequest) = context.read_json(request).await?;
    let asked = context.api.actors.request(&request, body.reason, body.dry_run)?;
    let (store, stored) = (Arc::clone(&context.store.store), context.stored.clone());
    let work = move || {
        // The store does not know which kind the client asked for.
        read(&*store, J::KIND, &id)?;
        write(&*store, J::KIND, &id, &asked)?;
        let details = read(&*store, J::KIND, &id)?;
        if !asked.dry_run {
            // A delayed withdrawal is cancelled at once.
            stored.notify(slice::from_ref(&details.withdrawal.service_id));
        }
        Ok(details)
    };
    let details = context.store.writes.run(work).await?;
    context.json(&details, &context.api.links(&request)).map(Json)
}

fn write_speed_up(
    store: &dyn WithdrawalStore,
    kind: Queued,
    id: &WithdrawalId,
    asked: &OperatorRequest,
) -> Result<(), ApiError> {
    match store.speed_up_withdrawal(id, asked).map_err(ApiError::write_failed)? {
        SpeedUpOutcome::Requested => Ok(()),
        SpeedUpOutcome::NotSent { state } => {
            Err(WithdrawalRequestError::NotSent { kind, state: kind.state_name(state) }.into())
        }
        SpeedUpOutcome::NotFound => Err(kind.not_found(*id).into()),
    }
}

fn write_retry(
    store: &dyn WithdrawalStore,
    kind: Queued,
    id: &WithdrawalId,
    asked: &OperatorRequest,
) -> Result<(), ApiError> {
    match store.retry_withdrawal(id, asked).map_err(ApiError::write_failed)? {
        RetryOutcome::Scheduled { .. } => Ok(()),
        RetryOutcome::NotFailed { state } => {
            Err(WithdrawalRequestError::NotFailed { kind, state: kind.state_name(state) }.into())
        }
        RetryOutcome::PaymentLimit(error) => Err(error.into()),
        RetryOutcome::NotFound => Err(kind.not_found(*id).into()),
    }
}

fn write_cancellation(
    store: &dyn WithdrawalStore,
    kind: Queued,
    id: &WithdrawalId,
    asked: &OperatorRequest,
) -> Result<(), ApiError> {
    match store.cancel_withdrawal(id, asked).map_err(ApiError::write_failed)? {
        CancelOutcome::Requested { .. } => Ok(()),
        CancelOutcome::AlreadyEnded { state } => {
            let state = kind.state_name(state);
            Err(WithdrawalRequestError::AlreadyEnded { kind, state }.into())
        }
        CancelOutcome::NotFound => Err(kind.not_found(*id).into()),
    }
}

/// The one with this id, if it is of this kind.
fn read(
    store: &dyn WithdrawalStore,
    kind: Queued,
    id: &WithdrawalId,
) -> Result<WithdrawalDetails, ApiError> {
    let details = store.withdrawal(id).map_err(ApiError::write_failed)?;
    let details = details.filter(|details| Queued::of(&details.withdrawal) == kind);
    Ok(details.ok_or_else(|| kind.not_found(*id))?)
}
