use std::{slice, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header::LOCATION, request::Parts},
    response::{IntoResponse, Response},
};
use grid_batch_core::{AddOutcome, BatchError};
use grid_batch_withdrawals::{
    Withdrawal, WithdrawalConflict, WithdrawalDetails, WithdrawalId, WithdrawalKind,
    WithdrawalStore,
};
use log::warn;

use crate::{
    http::{ApiError, link},
    state::StoredCallback,
    withdrawals::{
        context::WithdrawalContext,
        derived_ids::{random_id, withdrawal_id_from_key},
        idempotency_key::{KEY_FIELD, take_idempotency_key},
        json::{withdrawal_json, withdrawal_path},
    },
};

const FIELDS: &[&str] = &["pool", "beneficiary", "amount", KEY_FIELD];

/// `POST /withdrawals`.
pub(crate) async fn post(
    State(context): State<Arc<WithdrawalContext>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (request, mut fields) = context.read_json(request, FIELDS).await?;
    let (pool, service_id) = context.parse_pool(&fields.string("pool")?)?;
    let beneficiary = context.parse_beneficiary(&fields.string("beneficiary")?)?;
    let amount = context.parse_amount(&fields.string("amount")?)?;
    let id = match take_idempotency_key(&request.headers, &mut fields)? {
        Some(key) => withdrawal_id_from_key(&pool, &key),
        None => WithdrawalId::from_bytes(random_id()?),
    };
    let kind = WithdrawalKind::Propose;
    let withdrawal =
        Withdrawal { id, service_id, kind, reward_id: None, pool, beneficiary, amount };
    schedule(&context, &request, withdrawal, UniqueBy::Key).await
}

/// What makes a withdrawal unique. It decides how a request is answered whose withdrawal is stored
/// already.
#[derive(Debug, Clone, Copy)]
pub(crate) enum UniqueBy {
    /// The idempotency key: the same request again gets the stored withdrawal.
    Key,
    /// The member: a second request is refused, unless its idempotency key marks it as a repetition
    /// and it has the same contents.
    Member { may_repeat: bool },
}

/// Schedules a withdrawal, and answers with its present state.
pub(crate) async fn schedule(
    context: &WithdrawalContext,
    request: &Parts,
    withdrawal: Withdrawal,
    unique_by: UniqueBy,
) -> Result<Response, ApiError> {
    let id = withdrawal.id;
    let (store, stored) = (Arc::clone(&context.store), context.stored.clone());
    // If the client disconnects, the write and the callback still run.
    let write = move || write(&*store, &stored, &withdrawal);
    let written = context.writes.run(write).await?;
    let link = || link::to_path(&withdrawal_path(&id), request, context.api.local_addr);
    let details = match (written, unique_by) {
        (Ok((AddOutcome::AlreadyStored, _)), UniqueBy::Member { may_repeat: false })
        | (Err(_), UniqueBy::Member { .. }) => {
            return Err(ApiError::AlreadyPaid { link: link() });
        }
        (Err(WithdrawalConflict { stored }), UniqueBy::Key) => {
            return Err(ApiError::WithdrawalConflict { stored, link: link() });
        }
        (Ok((_, details)), _) => details,
    };
    let location = [(LOCATION, withdrawal_path(&id))];
    let json = withdrawal_json(context, request, details);
    Ok((StatusCode::CREATED, location, Json(json)).into_response())
}

type WriteResult = Result<(AddOutcome, WithdrawalDetails), WithdrawalConflict>;

fn write(
    store: &dyn WithdrawalStore,
    stored: &StoredCallback,
    withdrawal: &Withdrawal,
) -> Result<WriteResult, ApiError> {
    let id = withdrawal.id;
    let not_scheduled = |error: BatchError| {
        warn!(withdrawal:% = id, error:%; "scheduling a withdrawal failed");
        ApiError::NotScheduled(id)
    };
    let results = store.schedule(slice::from_ref(withdrawal)).map_err(not_scheduled)?;
    let outcome = match results.into_iter().next() {
        Some(Ok(outcome)) => outcome,
        Some(Err(conflict)) => return Ok(Err(conflict)),
        None => return Err(ApiError::NotScheduled(id)),
    };
    if outcome == AddOutcome::Stored {
        stored.notify(slice::from_ref(&withdrawal.service_id));
    }
    let details = store.withdrawal(&id).map_err(not_scheduled)?;
    details.map(|details| Ok((outcome, details))).ok_or(ApiError::NotScheduled(id))
}
