use std::{collections::BTreeSet, sync::Arc};

use axum::{Json, extract::State, http::request::Parts};
use grid_batch_withdrawals::{
    WithdrawalFilter, WithdrawalId, WithdrawalPage, WithdrawalState, WithdrawalTexts,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    http::{
        ApiError, PageLimit, Query, WithdrawalProblems, WithdrawalStateFilter, parse_states_of,
    },
    withdrawals::{QueuedJson, WithdrawalContext, WithdrawalJson},
};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WithdrawalsParams {
    /// The address of the pool
    pool: Option<String>,
    /// Withdrawals from pools whose address has this text, in any case
    pool_contains: Option<String>,
    /// The address that is paid
    beneficiary: Option<String>,
    /// Withdrawals to addresses that have this text, in any case
    beneficiary_contains: Option<String>,
    /// The reward
    reward_id: Option<String>,
    /// The key of the request
    idempotency_key: Option<String>,
    /// Withdrawals whose key has this text
    idempotency_key_contains: Option<String>,
    /// States; also `open` and `ended`
    #[param(value_type = Option<Vec<WithdrawalStateFilter>>, inline)]
    state: Option<Vec<String>>,
    /// Limit of the items of the page: 1 to 1,000, by default 100
    #[param(value_type = Option<usize>, minimum = 1, maximum = 1_000)]
    limit: PageLimit,
    /// `next` of the page before
    after: Option<String>,
    /// The same
    before: Option<String>,
}

/// A page of withdrawals or transactions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueuedPageJson<T> {
    data: Vec<T>,
    /// The parameter `after` of the next page; null after the last one.
    next: Option<String>,
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
        (status = 200, description = "A page of withdrawals, the newest first; it can have fewer than `limit` and not be the last one", body = QueuedPageJson<WithdrawalJson>),
        WithdrawalProblems,
    ),
)]
pub(crate) async fn get(
    State(context): State<Arc<WithdrawalContext>>,
    request: Parts,
) -> Result<Json<QueuedPageJson<WithdrawalJson>>, ApiError> {
    let query = Query::parse(request.uri.query())?;
    let params: WithdrawalsParams = query.params()?;
    let before = parse_before(params.after.as_deref().or(params.before.as_deref()))?;
    let position = PagePosition { before, limit: params.limit };
    let filter = parse_filter(&context, params)?;
    read_page(&context, &request, &query, filter, position).await
}

/// Where a page starts, and how many it has at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PagePosition {
    pub(crate) before: Option<WithdrawalId>,
    pub(crate) limit: PageLimit,
}

/// The id in the parameter `before`.
pub(crate) fn parse_before(text: Option<&str>) -> Result<Option<WithdrawalId>, ApiError> {
    Ok(text.map(str::parse).transpose()?)
}

/// A page of those that are selected, the newest first.
pub(crate) async fn read_page<J: QueuedJson>(
    context: &WithdrawalContext,
    request: &Parts,
    query: &Query,
    filter: WithdrawalFilter,
    position: PagePosition,
) -> Result<Json<QueuedPageJson<J>>, ApiError> {
    let PagePosition { before, limit } = position;
    let read =
        context.store.read(move |store| store.withdrawals(&filter, before.as_ref(), limit.0));
    let (WithdrawalPage { withdrawals, next }, links) = (read.await?, context.api.links(request));
    let paging = PagingJson { limit: limit.0, next: next.map(|next| links.next_page(query, next)) };
    let next = next.map(|next| next.to_string());
    let data = withdrawals.iter().filter_map(|details| J::of(details, context, &links)).collect();
    let link = links.own();
    Ok(Json(QueuedPageJson { data, next, paging, link }))
}

fn parse_filter(
    context: &WithdrawalContext,
    params: WithdrawalsParams,
) -> Result<WithdrawalFilter, ApiError> {
    let contains = WithdrawalTexts {
        pool: params.pool_contains,
        beneficiary: params.beneficiary_contains,
        idempotency_key: params.idempotency_key_contains,
        ..WithdrawalTexts::default()
    };
    let beneficiary = params.beneficiary.map(|text| context.parse_beneficiary(&text));
    Ok(WithdrawalFilter {
        pool: params.pool.map(|text| context.parse_any_pool(&text)).transpose()?,
        reward_id: params.reward_id.as_deref().map(str::parse).transpose()?,
        beneficiary: beneficiary.transpose()?,
        idempotency_key: params.idempotency_key,
        states: parse_states::<WithdrawalJson>(params.state.as_deref().unwrap_or_default())?,
        contains,
        ..WithdrawalFilter::default()
    })
}

/// The states in the parameter `state`, by the names that they have for this kind.
pub(crate) fn parse_states<J: QueuedJson>(
    names: &[String],
) -> Result<BTreeSet<WithdrawalState>, ApiError> {
    let name = |state| J::KIND.state_name(state);
    parse_states_of(
        names.iter().map(String::as_str),
        WithdrawalState::ALL,
        name,
        WithdrawalState::has_ended,
    )
}
