use grid_batch_core::AddOutcome;
use std::{slice, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header::LOCATION, request::Parts},
    response::{IntoResponse, Response},
};
use grid_batch_store::{Store, StoreError};
use grid_batch_withdrawals::{
    Withdrawal, WithdrawalConflict, WithdrawalDetails, WithdrawalId, WithdrawalKind,
};
use log::warn;

use crate::{
    error::ApiError,
    idempotency, ids, link,
    pools::Pools,
    stored::{Stored, tell},
    withdrawals::show::{path, show},
};

const MEMBERS: &[&str] = &["pool", "beneficiary", "amount", idempotency::MEMBER];

/// `POST /withdrawals`.
pub(crate) async fn post(
    State(pools): State<Arc<Pools>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (request, mut members) = pools.read(request, MEMBERS).await?;
    let (pool, service_id) = pools.pool(&members.text("pool")?)?;
    let beneficiary = pools.beneficiary(&members.text("beneficiary")?)?;
    let amount = pools.amount(&members.text("amount")?)?;
    let id = match idempotency::key(&request.headers, &mut members)? {
        Some(key) => ids::of_key(&pool, &key),
        None => WithdrawalId::from_bytes(ids::random()?),
    };
    let kind = WithdrawalKind::Propose;
    let withdrawal =
        Withdrawal { id, service_id, kind, reward_id: None, pool, beneficiary, amount };
    schedule(&pools, &request, withdrawal, Once::ByKey).await
}

/// What holds a withdrawal to being scheduled once, and so what to say of one that is there.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Once {
    /// Its key: the same again is the same.
    ByKey,
    /// Its member: another is refused. Who `repeats` perhaps is told of the one that is there, where
    /// it is the same.
    ByMember { repeats: bool },
}

/// Schedules a withdrawal and answers with it as it stands.
pub(crate) async fn schedule(
    pools: &Pools,
    request: &Parts,
    withdrawal: Withdrawal,
    once: Once,
) -> Result<Response, ApiError> {
    let id = withdrawal.id;
    let (store, stored) = (pools.app.parts.store.clone(), Arc::clone(&pools.app.parts.stored));
    // Whoever stops to wait takes nothing back, and the composer is told all the same.
    let work = move || write(&store, &*stored, &withdrawal);
    let written = pools.app.writing.run(work).await?;
    let link = || link::to(&path(&id), request, pools.app.local_addr);
    let story = match (written, once) {
        (Ok((AddOutcome::AlreadyStored, _)), Once::ByMember { repeats: false })
        | (Err(_), Once::ByMember { .. }) => return Err(ApiError::PaidAlready { link: link() }),
        (Err(WithdrawalConflict { stored }), Once::ByKey) => {
            return Err(ApiError::KeyConflict { stored, link: link() });
        }
        (Ok((_, story)), _) => story,
    };
    let location = [(LOCATION, path(&id))];
    Ok((StatusCode::CREATED, location, Json(show(pools, request, story))).into_response())
}

type Written = Result<(AddOutcome, WithdrawalDetails), WithdrawalConflict>;

fn write(store: &Store, stored: &Stored, withdrawal: &Withdrawal) -> Result<Written, ApiError> {
    let id = withdrawal.id;
    let unsure = |error: StoreError| {
        warn!(withdrawal:% = id, error:%; "a withdrawal may not have been scheduled");
        ApiError::NotScheduled(id)
    };
    let answers = store.schedule(slice::from_ref(withdrawal)).map_err(unsure)?;
    let addition = match answers.into_iter().next() {
        Some(Ok(addition)) => addition,
        Some(Err(conflict)) => return Ok(Err(conflict)),
        None => return Err(ApiError::NotScheduled(id)),
    };
    if addition == AddOutcome::Stored {
        tell(stored, slice::from_ref(&withdrawal.service_id));
    }
    let story = store.withdrawal(&id).map_err(unsure)?;
    story.map(|story| Ok((addition, story))).ok_or(ApiError::NotScheduled(id))
}
