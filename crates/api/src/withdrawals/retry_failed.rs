use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::{Excerpt, Timestamp};
use grid_batch_withdrawals::{FailedFilter, FailedWithdrawal, FailedWithdrawals, WithdrawalStore};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    http::{ApiError, JsonObject, SawtoothErrors, link},
    state::StoredCallback,
    withdrawals::{context::WithdrawalContext, json::withdrawal_path},
};

const FIELDS: &[&str] =
    &["pool", "service_id", "failed_since", "reason_contains", "limit", "reason", "dry_run"];

/// How many withdrawals one request retries, unless it says so. Each is a commit of its own.
const DEFAULT_LIMIT: u32 = 100;
const LARGEST_LIMIT: u32 = 1_000;

/// What was retried, or would be.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RetriedJson {
    data: Vec<FailedWithdrawalJson>,
    /// The first 1,000 withdrawals that a payment limit refuses.
    refused: Vec<RefusedRetryJson>,
    /// How many withdrawals a payment limit refuses.
    refused_count: u64,
    /// Whether more match than were examined: send the same request again to continue.
    has_more: bool,
}

#[derive(Debug, Serialize, ToSchema)]
struct RefusedRetryJson {
    id: String,
    reason: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct FailedWithdrawalJson {
    id: String,
    service_id: String,
    pool: String,
    beneficiary: String,
    amount: String,
    failed_at: String,
    fail_reason: String,
    link: String,
}

/// The body of `POST /withdrawals/retry`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the body")]
pub(crate) struct RetryRequest {
    /// Only those of this pool.
    pool: Option<String>,
    /// Only those of this gas admin's service.
    service_id: Option<String>,
    /// Only those that failed at this time or later.
    failed_since: Option<String>,
    /// Only those whose reason contains this text.
    reason_contains: Option<String>,
    /// The most withdrawals: 1 to 1,000, by default 100.
    limit: Option<u32>,
    /// Why they are scheduled again, for the log.
    reason: String,
    /// Lists what would be scheduled again, and changes nothing.
    dry_run: Option<bool>,
}

/// `POST /withdrawals/retry`: schedules failed withdrawals again, the oldest first.
#[utoipa::path(
    post, path = "/withdrawals/retry", tag = "withdrawals", operation_id = "retryFailedWithdrawals", summary = "Schedule failed withdrawals again",
    request_body(content = RetryRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "What is scheduled again, or would be", body = RetriedJson),
        SawtoothErrors,
    ),
)]
pub(crate) async fn post(
    State(context): State<Arc<WithdrawalContext>>,
    request: Request,
) -> Result<Json<RetriedJson>, ApiError> {
    let (request, mut fields) = context.read_json(request, FIELDS).await?;
    let filter = read_filter(&context, &mut fields)?;
    let limit = fields.optional_u32("limit")?.unwrap_or(DEFAULT_LIMIT);
    if !(1..=LARGEST_LIMIT).contains(&limit) {
        let rule = format!("it must be a number from 1 to {LARGEST_LIMIT}");
        return Err(ApiError::invalid_value("limit", rule));
    }
    let limit = limit as usize;
    let asked = context.api.actors.take_request(&request, &mut fields)?;
    let (store, stored) = (Arc::clone(&context.store), context.stored.clone());
    let work = move || {
        if asked.dry_run {
            filter.find(&*store, limit).map_err(ApiError::read_failed)
        } else {
            retry(&filter, limit, &asked, &*store, &stored)
        }
    };
    let found = context.writes.run(work).await?;
    let FailedWithdrawals { withdrawals, refused, refused_count, has_more } = found;
    let to_json = |failed: FailedWithdrawal| {
        let path = withdrawal_path(&failed.withdrawal.id);
        FailedWithdrawalJson::new(failed, link::to_path(&path, &request, context.api.local_addr))
    };
    let refused = refused.into_iter().map(|(failed, error)| RefusedRetryJson {
        id: failed.withdrawal.id.to_string(),
        reason: error.to_string(),
    });
    Ok(Json(RetriedJson {
        data: withdrawals.into_iter().map(to_json).collect(),
        refused: refused.collect(),
        refused_count,
        has_more,
    }))
}

fn read_filter(
    context: &WithdrawalContext,
    fields: &mut JsonObject,
) -> Result<FailedFilter, ApiError> {
    let pool = fields.optional_string("pool")?;
    let pool = pool.map(|text| context.parse_any_pool(&text)).transpose()?;
    let service_id = fields.optional_string("service_id")?;
    let failed_since = fields.optional_string("failed_since")?;
    let filter = FailedFilter {
        pool,
        service_id: service_id.map(|text| text.parse()).transpose()?,
        failed_since: failed_since.as_deref().map(parse_time).transpose()?,
        reason_contains: fields.optional_string("reason_contains")?,
    };
    if filter.selects_all() {
        let rule = "at least one of pool, service_id, failed_since and reason_contains is required";
        return Err(ApiError::invalid_value("request", rule));
    }
    Ok(filter)
}

fn parse_time(text: &str) -> Result<Timestamp, ApiError> {
    humantime::parse_rfc3339(text).map(Timestamp::from).map_err(|_| {
        let shown = Excerpt::of(text);
        let rule = format!("it is {shown}; it must be a time such as 2026-11-22T09:30:00Z");
        ApiError::invalid_value("failed_since", rule)
    })
}

/// Retries, and wakes the queues of those that were retried.
fn retry(
    filter: &FailedFilter,
    limit: usize,
    asked: &OperatorRequest,
    store: &dyn WithdrawalStore,
    stored: &StoredCallback,
) -> Result<FailedWithdrawals, ApiError> {
    let retried = filter.retry(store, limit, asked).map_err(ApiError::write_failed)?;
    let services = retried.withdrawals.iter().map(|it| it.withdrawal.service_id.clone());
    let mut services: Vec<_> = services.collect();
    services.sort_unstable();
    services.dedup();
    stored.notify(&services);
    Ok(retried)
}

impl FailedWithdrawalJson {
    fn new(failed: FailedWithdrawal, link: String) -> Self {
        let FailedWithdrawal { withdrawal, failed_at, fail_reason } = failed;
        Self {
            id: withdrawal.id.to_string(),
            service_id: withdrawal.service_id.to_string(),
            pool: withdrawal.pool,
            beneficiary: withdrawal.beneficiary,
            amount: withdrawal.amount,
            failed_at: failed_at.rfc3339_micros(),
            fail_reason,
            link,
        }
    }
}
