use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::Excerpt;
use grid_batch_withdrawals::{WithdrawalFilter, WithdrawalId};
use serde::Serialize;

use crate::{
    error::ApiError,
    link,
    pools::Pools,
    query::Query,
    withdrawals::{json::WithdrawalJson, show::show},
};

const NAMES: &[&str] = &["pool", "beneficiary", "reward_id", "state", "limit", "before"];
/// How many stand on a page, where the client does not say, and at most.
const USUAL: usize = 100;
const MOST: usize = 1_000;

/// A page of withdrawals.
#[derive(Debug, Serialize)]
pub(crate) struct Page {
    data: Vec<WithdrawalJson>,
    paging: Paging,
    link: String,
}

#[derive(Debug, Serialize)]
struct Paging {
    limit: usize,
    /// The address of the next page, where there is one.
    next: Option<String>,
}

/// `GET /withdrawals`: the newest first.
pub(crate) async fn get(
    State(pools): State<Arc<Pools>>,
    request: Request,
) -> Result<Json<Page>, ApiError> {
    let (request, _) = request.into_parts();
    let query = Query::parse(request.uri.query())?;
    query.check_names(NAMES)?;
    let filter = filter(&pools, &query)?;
    let limit = limit(&query)?;
    let before = before(&query)?;

    let store = pools.app.parts.store.clone();
    // One more, which says that there is another page.
    let read =
        move || store.withdrawals(&filter, before.as_ref(), limit + 1).map_err(ApiError::not_read);
    let mut stories = pools.app.reading.run(read).await?;
    let has_next = stories.len() > limit;
    stories.truncate(limit);

    let local = pools.app.local_addr;
    let last = stories.last().map(|story| story.withdrawal.id).filter(|_| has_next);
    let next = last.map(|last| link::to_next(&request, local, &query, &last));
    let data = stories.into_iter().map(|story| show(&pools, &request, story)).collect();
    let link = link::to_itself(&request, local);
    Ok(Json(Page { data, paging: Paging { limit, next }, link }))
}

fn filter(pools: &Pools, query: &Query) -> Result<WithdrawalFilter, ApiError> {
    let pool = query.get("pool")?.map(|text| pools.pool(text)).transpose()?;
    let beneficiary = query.get("beneficiary")?.map(|text| pools.beneficiary(text)).transpose()?;
    let reward_id = query.get("reward_id")?.map(str::parse).transpose();
    let ended = match query.get("state")? {
        None => None,
        Some("ended") => Some(true),
        Some("open") => Some(false),
        Some(other) => {
            let rule = format!("{}; it must be ended, or open", Excerpt::of(other));
            return Err(ApiError::Value { name: "state", rule });
        }
    };
    Ok(WithdrawalFilter {
        pool: pool.map(|(pool, _)| pool),
        beneficiary,
        reward_id: reward_id.map_err(ApiError::ShortId)?,
        ended,
        ..WithdrawalFilter::default()
    })
}

fn limit(query: &Query) -> Result<usize, ApiError> {
    let Some(text) = query.get("limit")? else { return Ok(USUAL) };
    text.parse().ok().filter(|limit| (1..=MOST).contains(limit)).ok_or_else(|| {
        let rule = format!("{}; it must be a number from 1 to {MOST}", Excerpt::of(text));
        ApiError::Value { name: "limit", rule }
    })
}

fn before(query: &Query) -> Result<Option<WithdrawalId>, ApiError> {
    query.get("before")?.map(str::parse).transpose().map_err(ApiError::ShortId)
}
