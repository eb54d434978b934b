use std::{slice, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use grid_batch_store::Store;
use grid_batch_withdrawals::{CancelOutcome, RetryOutcome, WithdrawalDetails, WithdrawalId};

use crate::{
    error::ApiError,
    path_id::{self, PathId},
    pools::Pools,
    stored::{Stored, tell},
    withdrawals::{json::WithdrawalJson, show::show},
};

type Answer = Result<(StatusCode, Json<WithdrawalJson>), ApiError>;

/// `POST /withdrawals/{id}/retry`: a person has one that failed tried anew.
pub(crate) async fn retry(
    State(pools): State<Arc<Pools>>,
    path: PathId,
    request: Request,
) -> Answer {
    let (request, _) = pools.read(request, &[]).await?;
    let id = path_id::parse(path)?;
    let (store, stored) = (pools.app.parts.store.clone(), Arc::clone(&pools.app.parts.stored));
    let story = pools.app.writing.run(move || write_retry(&store, &*stored, &id)).await?;
    Ok((StatusCode::OK, Json(show(&pools, &request, story))))
}

/// `POST /withdrawals/{id}/cancel`: a person wants it undone, if that can still be.
pub(crate) async fn cancel(
    State(pools): State<Arc<Pools>>,
    path: PathId,
    request: Request,
) -> Answer {
    let (request, _) = pools.read(request, &[]).await?;
    let id = path_id::parse(path)?;
    let store = pools.app.parts.store.clone();
    let story = pools.app.writing.run(move || write_cancel(&store, &id)).await?;
    Ok((StatusCode::ACCEPTED, Json(show(&pools, &request, story))))
}

fn write_retry(
    store: &Store,
    stored: &Stored,
    id: &WithdrawalId,
) -> Result<WithdrawalDetails, ApiError> {
    match store.retry_withdrawal(id).map_err(ApiError::not_written)? {
        RetryOutcome::Scheduled { .. } => {
            let story = read(store, id)?;
            tell(stored, slice::from_ref(&story.withdrawal.service_id));
            Ok(story)
        }
        RetryOutcome::NotFailed { state } => Err(ApiError::NotFailed(state.into())),
        RetryOutcome::NotFound => Err(ApiError::NoWithdrawal(*id)),
    }
}

fn write_cancel(store: &Store, id: &WithdrawalId) -> Result<WithdrawalDetails, ApiError> {
    match store.cancel_withdrawal(id).map_err(ApiError::not_written)? {
        CancelOutcome::Requested { .. } => read(store, id),
        CancelOutcome::AlreadyEnded { state } => Err(ApiError::Ended(state.into())),
        CancelOutcome::NotFound => Err(ApiError::NoWithdrawal(*id)),
    }
}

fn read(store: &Store, id: &WithdrawalId) -> Result<WithdrawalDetails, ApiError> {
    store.withdrawal(id).map_err(ApiError::not_written)?.ok_or(ApiError::NoWithdrawal(*id))
}
