use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::Excerpt;
use grid_batch_withdrawals::{WithdrawalFilter, WithdrawalId};
use serde::Serialize;

use crate::{
    http::{ApiError, Query, link},
    withdrawals::{
        context::WithdrawalContext,
        json::{WithdrawalJson, withdrawal_json},
    },
};

const PARAMETERS: &[&str] = &["pool", "beneficiary", "reward_id", "state", "limit", "before"];
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;

/// A page of withdrawals.
#[derive(Debug, Serialize)]
pub(crate) struct PageJson {
    data: Vec<WithdrawalJson>,
    paging: PagingJson,
    link: String,
}

#[derive(Debug, Serialize)]
struct PagingJson {
    limit: usize,
    /// The URL of the next page, if there is one.
    next: Option<String>,
}

/// `GET /withdrawals`: a page of withdrawals, the newest first.
pub(crate) async fn get(
    State(context): State<Arc<WithdrawalContext>>,
    request: Request,
) -> Result<Json<PageJson>, ApiError> {
    let (request, _) = request.into_parts();
    let query = Query::parse(request.uri.query())?;
    query.check_names(PARAMETERS)?;
    let filter = parse_filter(&context, &query)?;
    let limit = parse_limit(&query)?;
    let before: Option<WithdrawalId> = query.get("before")?.map(str::parse).transpose()?;

    let store = Arc::clone(&context.store);
    // One more than the page has shows whether there is a next page.
    let read = move || {
        store.withdrawals(&filter, before.as_ref(), limit + 1).map_err(ApiError::read_failed)
    };
    let mut page = context.api.reads.run(read).await?;
    let has_next = page.len() > limit;
    page.truncate(limit);

    let local_addr = context.api.local_addr;
    let last = page.last().map(|details| details.withdrawal.id).filter(|_| has_next);
    let next = last.map(|last| link::to_next_page(&request, local_addr, &query, last));
    let data =
        page.into_iter().map(|details| withdrawal_json(&context, &request, details)).collect();
    let link = link::to_request(&request, local_addr);
    Ok(Json(PageJson { data, paging: PagingJson { limit, next }, link }))
}

fn parse_filter(context: &WithdrawalContext, query: &Query) -> Result<WithdrawalFilter, ApiError> {
    let pool = query.get("pool")?.map(|text| context.parse_pool(text)).transpose()?;
    let beneficiary =
        query.get("beneficiary")?.map(|text| context.parse_beneficiary(text)).transpose()?;
    let reward_id = query.get("reward_id")?.map(str::parse).transpose()?;
    let ended = match query.get("state")? {
        None => None,
        Some("ended") => Some(true),
        Some("open") => Some(false),
        Some(other) => {
            let rule = format!("it is {}; it must be ended or open", Excerpt::of(other));
            return Err(ApiError::InvalidValue { name: "state", rule });
        }
    };
    let pool = pool.map(|(pool, _)| pool);
    Ok(WithdrawalFilter { pool, beneficiary, reward_id, ended, ..WithdrawalFilter::default() })
}

fn parse_limit(query: &Query) -> Result<usize, ApiError> {
    let Some(text) = query.get("limit")? else { return Ok(DEFAULT_LIMIT) };
    text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit)).ok_or_else(|| {
        let rule =
            format!("it is {}; it must be a number from 1 to {MAX_LIMIT}", Excerpt::of(text));
        ApiError::InvalidValue { name: "limit", rule }
    })
}
