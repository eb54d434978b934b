use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    http::request::Parts,
};
use grid_batch_withdrawals::{WithdrawalDetails, WithdrawalId};

use crate::{
    error::ApiError,
    link,
    path_id::{self, PathId},
    pools::Pools,
    withdrawals::json::WithdrawalJson,
};

/// `GET /withdrawals/{id}`.
pub(crate) async fn get(
    State(pools): State<Arc<Pools>>,
    path: PathId,
    request: Request,
) -> Result<Json<WithdrawalJson>, ApiError> {
    let id: WithdrawalId = path_id::parse(path)?;
    let (request, _) = request.into_parts();
    let store = pools.app.parts.store.clone();
    let read = move || store.withdrawal(&id).map_err(ApiError::not_read);
    let story = pools.app.reading.run(read).await?.ok_or(ApiError::NoWithdrawal(id))?;
    Ok(Json(show(&pools, &request, story)))
}

pub(crate) fn show(pools: &Pools, request: &Parts, story: WithdrawalDetails) -> WithdrawalJson {
    let link = link::to(&path(&story.withdrawal.id), request, pools.app.local_addr);
    WithdrawalJson::of(story, link)
}

pub(crate) fn path(id: &WithdrawalId) -> String {
    format!("/withdrawals/{id}")
}
