use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
};
use grid_batch_withdrawals::{Reward, RewardConflict, RewardId, WithdrawalStore};

use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    http::{ApiError, WithdrawalProblems},
    rewards::json::{RewardJson, reward_path},
    withdrawals::{
        WithdrawalContext, WithdrawalRequestError, idempotency_key, random_id, reward_id_from_key,
    },
};

/// The body of `POST /rewards`.
#[derive(Deserialize, ToSchema)]
pub(crate) struct RewardRequest {
    /// The address of the pool.
    pool: String,
    /// The amount of each payment, in decimal digits.
    amount: String,
    /// Pays each member once, which is the default.
    once_per_member: Option<bool>,
    /// Marks a repetition of the request.
    idempotency_key: Option<String>,
}

/// `POST /rewards`.
#[utoipa::path(
    post, path = "/rewards", tag = "rewards", operation_id = "createReward", summary = "Create a reward",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Marks a repetition of the request"),
    ),
    request_body(content = RewardRequest, content_type = "application/json"),
    responses(
        (status = 201, description = "The reward", body = RewardJson),
        WithdrawalProblems,
    ),
)]
pub(crate) async fn post(
    State(context): State<Arc<WithdrawalContext>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (request, body): (_, RewardRequest) = context.read_json(request).await?;
    let (pool, _) = context.parse_pool(&body.pool)?;
    let amount = context.parse_amount(&body.amount)?;
    let once_per_member = body.once_per_member.unwrap_or(true);
    let id = match idempotency_key(&request.headers, body.idempotency_key)? {
        Some(key) => reward_id_from_key(&pool, &key),
        None => RewardId::from_bytes(random_id()?),
    };
    let reward = Reward { id, pool, amount, once_per_member, created_at: context.api.clock.now() };

    let store = Arc::clone(&context.store.store);
    let written = context.store.writes.run(move || write(&*store, &reward)).await?;
    let links = context.api.links(&request);
    let reward = written.map_err(|RewardConflict { stored }| {
        let link = links.path(&reward_path(&id));
        WithdrawalRequestError::RewardConflict { stored: Box::new(stored), link }
    })?;
    let location = [(LOCATION, reward_path(&id))];
    let json = RewardJson::new(reward, &links);
    Ok((StatusCode::CREATED, location, Json(json)).into_response())
}

/// Stores a reward, and returns the stored one: an earlier request may have stored it.
fn write(
    store: &dyn WithdrawalStore,
    reward: &Reward,
) -> Result<Result<Reward, RewardConflict>, ApiError> {
    if let Err(conflict) = store.add_reward(reward).map_err(ApiError::write_failed)? {
        return Ok(Err(conflict));
    }
    let stored = store.reward(&reward.id).map_err(ApiError::write_failed)?;
    stored.map(Ok).ok_or_else(ApiError::write_interrupted)
}
