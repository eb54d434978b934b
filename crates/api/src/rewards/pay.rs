use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use grid_batch_withdrawals::{Withdrawal, WithdrawalId, WithdrawalKind};

use crate::{
    error::ApiError,
    idempotency, ids,
    path_id::{self, PathId},
    pools::Pools,
    rewards::show::find,
    withdrawals::{Once, schedule},
};

const MEMBERS: &[&str] = &["beneficiary", idempotency::MEMBER];

/// `POST /rewards/{id}/claim`: a member asks for it.
pub(crate) async fn claim(
    State(pools): State<Arc<Pools>>,
    path: PathId,
    request: Request,
) -> Result<Response, ApiError> {
    pay(&pools, path, request, WithdrawalKind::Claim).await
}

/// `POST /rewards/{id}/give`: a member is given it.
pub(crate) async fn give(
    State(pools): State<Arc<Pools>>,
    path: PathId,
    request: Request,
) -> Result<Response, ApiError> {
    pay(&pools, path, request, WithdrawalKind::Give).await
}

async fn pay(
    pools: &Pools,
    path: PathId,
    request: Request,
    kind: WithdrawalKind,
) -> Result<Response, ApiError> {
    let (request, mut members) = pools.read(request, MEMBERS).await?;
    let beneficiary = pools.beneficiary(&members.text("beneficiary")?)?;
    let key = idempotency::key(&request.headers, &mut members)?;
    let reward = find(pools, path_id::parse(path)?).await?;
    let (pool, service_id) = pools.pool(&reward.pool)?;

    let repeats = key.is_some();
    let (id, once) = match key {
        _ if reward.once_per_member => {
            (ids::of_reward_and_member(&reward.id, &beneficiary), Once::ByMember { repeats })
        }
        Some(key) => (ids::of_reward_and_key(&reward.id, &key), Once::ByKey),
        None => (WithdrawalId::from_bytes(ids::random()?), Once::ByKey),
    };
    let (reward_id, amount) = (Some(reward.id), reward.amount);
    let withdrawal = Withdrawal { id, service_id, kind, reward_id, pool, beneficiary, amount };
    schedule(pools, &request, withdrawal, once).await
}
