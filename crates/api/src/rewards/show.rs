use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    http::request::Parts,
};
use grid_batch_withdrawals::{Reward, RewardId};
use serde::Serialize;

use crate::{
    error::ApiError,
    link,
    path_id::{self, PathId},
    pools::Pools,
    time::rfc3339,
};

/// A reward as clients are told of it.
#[derive(Debug, Serialize)]
pub(crate) struct RewardJson {
    id: String,
    pool: String,
    amount: String,
    once_per_member: bool,
    created_at: String,
    link: String,
}

/// `GET /rewards/{id}`.
pub(crate) async fn get(
    State(pools): State<Arc<Pools>>,
    path: PathId,
    request: Request,
) -> Result<Json<RewardJson>, ApiError> {
    let (request, _) = request.into_parts();
    let reward = find(&pools, path_id::parse(path)?).await?;
    Ok(Json(show(&pools, &request, reward)))
}

pub(crate) async fn find(pools: &Pools, id: RewardId) -> Result<Reward, ApiError> {
    let store = pools.app.parts.store.clone();
    let read = move || store.reward(&id).map_err(ApiError::not_read);
    pools.app.reading.run(read).await?.ok_or(ApiError::NoReward(id))
}

pub(crate) fn show(pools: &Pools, request: &Parts, reward: Reward) -> RewardJson {
    RewardJson {
        id: reward.id.to_string(),
        link: link::to(&path(&reward.id), request, pools.app.local_addr),
        pool: reward.pool,
        amount: reward.amount,
        once_per_member: reward.once_per_member,
        created_at: rfc3339(reward.created_at),
    }
}

pub(crate) fn path(id: &RewardId) -> String {
    format!("/rewards/{id}")
}
