use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::Excerpt;
use grid_batch_withdrawals::{WithdrawalFilter, WithdrawalId, WithdrawalState};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    http::{ApiError, Query, SawtoothErrors, link},
    withdrawals::{
        context::WithdrawalContext,
        json::{WithdrawalJson, withdrawal_json},
    },
};

const PARAMETERS: &[&str] =
    &["pool", "beneficiary", "reward_id", "idempotency_key", "state", "limit", "before"];
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;

/// A page of withdrawals.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WithdrawalPageJson {
    data: Vec<WithdrawalJson>,
    paging: PagingJson,
    link: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct PagingJson {
    limit: usize,
    /// The URL of the next page, if there is one.
    next: Option<String>,
}

/// `GET /withdrawals`: a page of withdrawals, the newest first.
#[utoipa::path(
    get, path = "/withdrawals", tag = "withdrawals", operation_id = "listWithdrawals", summary = "List withdrawals",
    params(
        ("pool" = Option<String>, Query, description = "The address of the pool"),
        ("beneficiary" = Option<String>, Query, description = "The address that is paid"),
        ("reward_id" = Option<String>, Query, description = "The reward"),
        ("idempotency_key" = Option<String>, Query, description = "The key of the request"),
        ("state" = Option<String>, Query, description = "States, separated by commas; also `open` and `ended`"),
        ("limit" = Option<String>, Query, description = "At most so many, 100 by default"),
        ("before" = Option<String>, Query, description = "The id after which the page starts"),
    ),
    responses(
        (status = 200, description = "A page of withdrawals, the newest first", body = WithdrawalPageJson),
        SawtoothErrors,
    ),
)]
pub(crate) async fn get(
    State(context): State<Arc<WithdrawalContext>>,
    request: Request,
) -> Result<Json<WithdrawalPageJson>, ApiError> {
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
    Ok(Json(WithdrawalPageJson { data, paging: PagingJson { limit, next }, link }))
}

fn parse_filter(context: &WithdrawalContext, query: &Query) -> Result<WithdrawalFilter, ApiError> {
    let pool = query.get("pool")?.map(|text| context.parse_any_pool(text)).transpose()?;
    let beneficiary =
        query.get("beneficiary")?.map(|text| context.parse_beneficiary(text)).transpose()?;
    let reward_id = query.get("reward_id")?.map(str::parse).transpose()?;
    let idempotency_key = query.get("idempotency_key")?.map(str::to_owned);
    let states = query.get("state")?.map_or_else(|| Ok(BTreeSet::new()), parse_states)?;
    Ok(WithdrawalFilter { pool, service_id: None, reward_id, beneficiary, idempotency_key, states })
}

/// The states of which all are meant.
const OPEN: &str = "open";
const ENDED: &str = "ended";

/// Parses states that are separated by commas.
fn parse_states(text: &str) -> Result<BTreeSet<WithdrawalState>, ApiError> {
    let mut states = BTreeSet::new();
    for name in text.split(',') {
        let is_meant = |state: &WithdrawalState| match name {
            OPEN => !state.has_ended(),
            ENDED => state.has_ended(),
            name => state.as_str() == name,
        };
        let meant: Vec<_> = WithdrawalState::ALL.into_iter().filter(is_meant).collect();
        if meant.is_empty() {
            return Err(unknown_state(name));
        }
        states.extend(meant);
    }
    Ok(states)
}

fn unknown_state(name: &str) -> ApiError {
    let names = WithdrawalState::ALL.map(WithdrawalState::as_str).join(", ");
    let rule = format!(
        "it has {}; it must be one or several of {names}, {OPEN} and {ENDED}, separated by commas",
        Excerpt::of(name)
    );
    ApiError::invalid_value("state", rule)
}

fn parse_limit(query: &Query) -> Result<usize, ApiError> {
    let Some(text) = query.get("limit")? else { return Ok(DEFAULT_LIMIT) };
    text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit)).ok_or_else(|| {
        let rule =
            format!("it is {}; it must be a number from 1 to {MAX_LIMIT}", Excerpt::of(text));
        ApiError::invalid_value("limit", rule)
    })
}
