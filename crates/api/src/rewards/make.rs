use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
};
use grid_batch_core::{Clock, SystemClock};
use grid_batch_store::Store;
use grid_batch_withdrawals::{Reward, RewardConflict, RewardId};

use crate::{
    error::ApiError,
    idempotency, ids, link,
    pools::Pools,
    rewards::show::{path, show},
};

const MEMBERS: &[&str] = &["pool", "amount", "once_per_member", idempotency::MEMBER];

/// `POST /rewards`.
pub(crate) async fn post(
    State(pools): State<Arc<Pools>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (request, mut members) = pools.read(request, MEMBERS).await?;
    let (pool, _) = pools.pool(&members.text("pool")?)?;
    let amount = pools.amount(&members.text("amount")?)?;
    let once_per_member = members.flag("once_per_member", true)?;
    let id = match idempotency::key(&request.headers, &mut members)? {
        Some(key) => ids::of_new_reward(&pool, &key),
        None => RewardId::from_bytes(ids::random()?),
    };
    let reward = Reward { id, pool, amount, once_per_member, created_at: SystemClock.now() };

    let store = pools.app.parts.store.clone();
    let stored = pools.app.writing.run(move || write(&store, &reward)).await?;
    let reward = stored.map_err(|RewardConflict { stored }| {
        let link = link::to(&path(&id), &request, pools.app.local_addr);
        ApiError::RewardConflict { stored: Box::new(stored), link }
    })?;
    let location = [(LOCATION, path(&id))];
    Ok((StatusCode::CREATED, location, Json(show(&pools, &request, reward))).into_response())
}

/// Stores a reward, and gives it as it is stored: it may have been there before.
fn write(store: &Store, reward: &Reward) -> Result<Result<Reward, RewardConflict>, ApiError> {
    if let Err(conflict) = store.add_reward(reward).map_err(ApiError::not_written)? {
        return Ok(Err(conflict));
    }
    let stored = store.reward(&reward.id).map_err(ApiError::not_written)?;
    stored.map(Ok).ok_or(ApiError::NotWritten)
}
