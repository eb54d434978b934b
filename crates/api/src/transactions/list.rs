use std::sync::Arc;

use axum::{Json, extract::State, http::request::Parts};
use grid_batch_withdrawals::{WithdrawalFilter, WithdrawalTexts};
use serde::Deserialize;
use utoipa::IntoParams;

use super::json::{CallJson, TransactionStateFilter};
use crate::{
    http::{ApiError, PageLimit, Problems, Query},
    withdrawals::{
        PagePosition, QueuedPageJson, WithdrawalContext, parse_before, parse_states, read_page,
    },
};

/// A transaction has up to a quarter of a MiB of data.
const LARGEST_PAGE: usize = 100;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TransactionsParams {
    /// The account: its name, its address or its service
    account: Option<String>,
    /// Transactions of accounts whose service, which ends with the address, has this text, in any case
    account_contains: Option<String>,
    /// The address that is called or paid
    to: Option<String>,
    /// Transactions to addresses that have this text, in any case
    to_contains: Option<String>,
    /// States; also `open` and `ended`
    #[param(value_type = Option<Vec<TransactionStateFilter>>, inline)]
    state: Option<Vec<String>>,
    /// The key of the request
    idempotency_key: Option<String>,
    /// Transactions whose key has this text
    idempotency_key_contains: Option<String>,
    /// Transactions whose label has this text
    label_contains: Option<String>,
    /// Limit of the items of the page: at most 100, because transactions can be long
    #[param(value_type = Option<usize>, minimum = 1, maximum = 1_000)]
    limit: PageLimit,
    /// `next` of the page before
    after: Option<String>,
    /// The same
    before: Option<String>,
}

/// `GET /v1/transactions`: a page of transactions, the newest first.
#[utoipa::path(
    get, path = "/v1/transactions", tag = "transactions", operation_id = "listTransactions", summary = "List transactions",
    params(TransactionsParams),
    responses(
        (status = 200, description = "A page of transactions, the newest first; it can have fewer than `limit` and not be the last one", body = QueuedPageJson<CallJson>),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<WithdrawalContext>>,
    request: Parts,
) -> Result<Json<QueuedPageJson<CallJson>>, ApiError> {
    let query = Query::parse(request.uri.query())?;
    let params: TransactionsParams = query.params()?;
    let before = parse_before(params.after.as_deref().or(params.before.as_deref()))?;
    let position = PagePosition { before, limit: params.limit.at_most(LARGEST_PAGE) };
    let filter = parse_filter(&context, params)?;
    read_page(&context, &request, &query, filter, position).await
}

fn parse_filter(
    context: &WithdrawalContext,
    params: TransactionsParams,
) -> Result<WithdrawalFilter, ApiError> {
    let rules = context.call_rules()?;
    let contains = WithdrawalTexts {
        service_id: params.account_contains,
        beneficiary: params.to_contains,
        idempotency_key: params.idempotency_key_contains,
        label: params.label_contains,
        ..WithdrawalTexts::default()
    };
    let parse_address =
        |text: String| rules.address(&text).map_err(|rule| ApiError::invalid_value("to", rule));
    Ok(WithdrawalFilter {
        service_id: params.account.map(|text| context.parse_any_account(&text)).transpose()?,
        beneficiary: params.to.map(parse_address).transpose()?,
        idempotency_key: params.idempotency_key,
        calls: true,
        states: parse_states::<CallJson>(params.state.as_deref().unwrap_or_default())?,
        contains,
        ..WithdrawalFilter::default()
    })
}
