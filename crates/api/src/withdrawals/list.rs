use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::Excerpt;
use grid_batch_withdrawals::{WithdrawalFilter, WithdrawalId, WithdrawalState};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    http::{ApiError, PageLimit, Query, SawtoothErrors},
    withdrawals::{context::WithdrawalContext, json::WithdrawalJson},
};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WithdrawalsParams {
    /// The address of the pool
    pool: Option<String>,
    /// The address that is paid
    beneficiary: Option<String>,
    /// The reward
    reward_id: Option<String>,
    /// The key of the request
    idempotency_key: Option<String>,
    /// States, separated by commas; also `open` and `ended`
    state: Option<String>,
    /// Limit of the items of the page: 1 to 1,000, by default 100
    #[param(value_type = Option<usize>)]
    limit: PageLimit,
    /// The id after which the page starts
    before: Option<String>,
}

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
    params(WithdrawalsParams),
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
    let params: WithdrawalsParams = query.params()?;
    let before: Option<WithdrawalId> = params.before.as_deref().map(str::parse).transpose()?;
    let limit = params.limit;
    let filter = parse_filter(&context, params)?;

    let read =
        context.store.read(move |store| store.withdrawals(&filter, before.as_ref(), limit.0 + 1));
    let (mut page, links) = (read.await?, context.api.links(&request));
    let last = limit.cut(&mut page).map(|details| details.withdrawal.id);
    let next = last.map(|last| links.next_page(&query, last));
    let data = page.iter().map(|details| WithdrawalJson::new(details, &links)).collect();
    let link = links.own();
    Ok(Json(WithdrawalPageJson { data, paging: PagingJson { limit: limit.0, next }, link }))
}

fn parse_filter(
    context: &WithdrawalContext,
    params: WithdrawalsParams,
) -> Result<WithdrawalFilter, ApiError> {
    let beneficiary = params.beneficiary.map(|text| context.parse_beneficiary(&text));
    Ok(WithdrawalFilter {
        pool: params.pool.map(|text| context.parse_any_pool(&text)).transpose()?,
        service_id: None,
        reward_id: params.reward_id.as_deref().map(str::parse).transpose()?,
        beneficiary: beneficiary.transpose()?,
        idempotency_key: params.idempotency_key,
        states: params.state.as_deref().map_or_else(|| Ok(BTreeSet::new()), parse_states)?,
    })
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
