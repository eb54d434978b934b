use std::sync::Arc;

use axum::{Json, extract::State, http::request::Parts};
use grid_batch_withdrawals::{Reward, RewardId};

use crate::{
    http::{ApiError, PathId, WithdrawalProblems, parse_path_id},
    rewards::json::RewardJson,
    withdrawals::{WithdrawalContext, WithdrawalRequestError},
};

/// `GET /rewards/{id}`.
#[utoipa::path(
    get, path = "/rewards/{id}", tag = "rewards", operation_id = "getReward", summary = "Read a reward",
    params(("id" = String, Path, description = "The reward")),
    responses(
        (status = 200, description = "The reward", body = RewardJson),
        WithdrawalProblems,
    ),
)]
pub(crate) async fn get(
    State(context): State<Arc<WithdrawalContext>>,
    path: PathId,
    request: Parts,
) -> Result<Json<RewardJson>, ApiError> {
    let reward = find_reward(&context, parse_path_id(path)?).await?;
    Ok(Json(RewardJson::new(reward, &context.api.links(&request))))
}

pub(crate) async fn find_reward(
    context: &WithdrawalContext,
    id: RewardId,
) -> Result<Reward, ApiError> {
    let reward = context.store.read(move |store| store.reward(&id)).await?;
    Ok(reward.ok_or(WithdrawalRequestError::RewardNotFound(id))?)
}
