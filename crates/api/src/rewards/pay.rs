use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use grid_batch_withdrawals::{Withdrawal, WithdrawalId, WithdrawalKind};

use utoipa::ToSchema;

use crate::{
    http::{ApiError, PathId, SawtoothErrors, parse_path_id},
    rewards::get::find_reward,
    withdrawals::{
        KEY_FIELD, UniqueBy, WithdrawalContext, WithdrawalJson, random_id, schedule,
        take_idempotency_key, withdrawal_id_from_reward_and_key,
        withdrawal_id_from_reward_and_member,
    },
};

const FIELDS: &[&str] = &["beneficiary", KEY_FIELD];

/// Who is paid a reward.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the body")]
pub(crate) struct PaymentRequest {
    /// The address that is paid.
    beneficiary: String,
    /// Marks a repetition of the request.
    idempotency_key: Option<String>,
}

/// `POST /rewards/{id}/claim`: a member claims a reward.
#[utoipa::path(
    post, path = "/rewards/{id}/claim", tag = "rewards", operation_id = "claimReward", summary = "Pay a reward to a member that claims it",
    params(
        ("id" = String, Path, description = "The reward"),
    ),
    request_body(content = PaymentRequest, content_type = "application/json"),
    responses(
        (status = 201, description = "The withdrawal", body = WithdrawalJson),
        SawtoothErrors,
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
    params(
        ("id" = String, Path, description = "The reward"),
    ),
    request_body(content = PaymentRequest, content_type = "application/json"),
    responses(
        (status = 201, description = "The withdrawal", body = WithdrawalJson),
        SawtoothErrors,
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
    let (request, mut fields) = context.read_json(request, FIELDS).await?;
    let beneficiary = context.parse_beneficiary(&fields.string("beneficiary")?)?;
    let key = take_idempotency_key(&request.headers, &mut fields)?;
    let reward = find_reward(context, parse_path_id(path)?).await?;
    let (pool, service_id) = context.parse_pool(&reward.pool)?;

    let may_repeat = key.is_some();
    let (id, unique_by) = match &key {
        _ if reward.once_per_member => (
            withdrawal_id_from_reward_and_member(&reward.id, &beneficiary),
            UniqueBy::Member { may_repeat },
        ),
        Some(key) => (withdrawal_id_from_reward_and_key(&reward.id, key), UniqueBy::Key),
        None => (WithdrawalId::from_bytes(random_id()?), UniqueBy::Key),
    };
    let (reward_id, amount) = (Some(reward.id), reward.amount);
    let idempotency_key = key;
    let withdrawal =
        Withdrawal { id, service_id, kind, reward_id, pool, beneficiary, amount, idempotency_key };
    schedule(context, &request, withdrawal, unique_by).await
}
