use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use grid_batch_withdrawals::{Withdrawal, WithdrawalId, WithdrawalKind};

use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    http::{ApiError, PathId, WithdrawalProblems, parse_path_id},
    rewards::get::find_reward,
    withdrawals::{
        UniqueBy, WithdrawalContext, WithdrawalJson, idempotency_key, random_id, schedule,
        withdrawal_id_from_reward_and_key, withdrawal_id_from_reward_and_member,
    },
};

/// Who is paid a reward.
#[derive(Deserialize, ToSchema)]
pub(crate) struct PaymentRequest {
    /// The address that is paid.
    beneficiary: String,
    /// Marks a repetition of the request.
    idempotency_key: Option<String>,
}

/// `POST /rewards/{id}/claim`: a member claims a reward.
#[utoipa::path(
    post, path = "/rewards/{id}/claim", tag = "rewards", operation_id = "claimReward", summary = "Pay a reward to a member that claims it",
    params(("id" = String, Path, description = "The reward")),
    request_body(content = PaymentRequest, content_type = "application/json"),
    responses(
        (status = 201, description = "The withdrawal", body = WithdrawalJson),
        WithdrawalProblems,
    ),
)]
pub(crate) async fn claim(
    State(context): State<Arc<WithdrawalContext>>,
    path: PathId,
    request: Request,
) -> Result<Response, ApiError> {
    pay(&context, path, request, WithdrawalKind::Claim).await
}

/// `POST /rewards/{id}/give`: a reward is given to a member.
#[utoipa::path(
    post, path = "/rewards/{id}/give", tag = "rewards", operation_id = "giveReward", summary = "Pay a reward to a member",
    params(("id" = String, Path, description = "The reward")),
    request_body(content = PaymentRequest, content_type = "application/json"),
    responses(
        (status = 201, description = "The withdrawal", body = WithdrawalJson),
        WithdrawalProblems,
    ),
)]
pub(crate) async fn give(
    State(context): State<Arc<WithdrawalContext>>,
    path: PathId,
    request: Request,
) -> Result<Response, ApiError> {
    pay(&context, path, request, WithdrawalKind::Give).await
}

async fn pay(
    context: &WithdrawalContext,
    path: PathId,
    request: Request,
    kind: WithdrawalKind,
) -> Result<Response, ApiError> {
    let (request, body): (_, PaymentRequest) = context.read_json(request).await?;
    let beneficiary = context.parse_beneficiary(&body.beneficiary)?;
    let idempotency_key = idempotency_key(&request.headers, body.idempotency_key)?;
    let reward = find_reward(context, parse_path_id(path)?).await?;
    let (pool, service_id) = context.parse_pool(&reward.pool)?;

    let may_repeat = idempotency_key.is_some();
    let (id, unique_by) = match &idempotency_key {
        _ if reward.once_per_member => (
            withdrawal_id_from_reward_and_member(&reward.id, &beneficiary),
            UniqueBy::Member { may_repeat },
        ),
        Some(key) => (withdrawal_id_from_reward_and_key(&reward.id, key), UniqueBy::Key),
        None => (WithdrawalId::from_bytes(random_id()?), UniqueBy::Key),
    };
    let (reward_id, amount) = (Some(reward.id), reward.amount);
    let withdrawal = Withdrawal {
        id,
        service_id,
        kind,
        reward_id,
        pool,
        beneficiary,
        amount,
        idempotency_key,
        call: None,
        trace: None,
    };
    schedule(context, &request, withdrawal, unique_by).await
}
