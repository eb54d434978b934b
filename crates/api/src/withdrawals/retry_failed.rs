use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::operators::OperatorRequest;
use grid_batch_withdrawals::{
    FailedFilter, FailedWithdrawal, FailedWithdrawals, PaymentLimitError, WithdrawalStore,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    http::{ApiError, PageLimit, Time, WithdrawalProblems, json_types},
    state::StoredCallback,
    withdrawals::{Queued, WithdrawalContext},
};

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

json_types! {
    struct RefusedRetryJson(failed: FailedWithdrawal, refusal: PaymentLimitError) {
        id: String = failed.withdrawal.id.to_string(),
        reason: String = refusal.to_string(),
    }

    struct FailedWithdrawalJson(failed: FailedWithdrawal, own_link: String) {
        id: String = failed.withdrawal.id.to_string(),
        service_id: String = failed.withdrawal.service_id.to_string(),
        pool: String = failed.withdrawal.pool,
        beneficiary: String = failed.withdrawal.beneficiary,
        amount: String = failed.withdrawal.amount,
        failed_at: Time = Time(failed.failed_at),
        fail_reason: String = failed.fail_reason,
        link: String = own_link,
    }
}

/// The body of `POST /withdrawals/retry`.
#[derive(Deserialize, ToSchema)]
pub(crate) struct RetryRequest {
    /// Only those of this pool.
    pool: Option<String>,
    /// Only those of this gas admin's service.
    service_id: Option<String>,
    /// Only those that failed at this time or later.
    #[schema(value_type = Option<String>)]
    failed_since: Option<Time>,
    /// Only those whose reason contains this text.
    reason_contains: Option<String>,
    /// The most withdrawals, each of which is a commit of its own: 1 to 1,000, by default 100.
    #[schema(value_type = Option<u32>)]
    limit: PageLimit,
    /// Why they are scheduled again, for the log.
    #[schema(value_type = String, required = true)]
    reason: Option<String>,
    /// Lists what would be scheduled again, and changes nothing.
    dry_run: Option<bool>,
}

/// `POST /withdrawals/retry`: schedules failed withdrawals again, the oldest first.
#[utoipa::path(
    post, path = "/withdrawals/retry", tag = "withdrawals", operation_id = "retryFailedWithdrawals", summary = "Schedule failed withdrawals again",
    request_body(content = RetryRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "What is scheduled again, or would be", body = RetriedJson),
        WithdrawalProblems,
    ),
)]
pub(crate) async fn post(
    State(context): State<Arc<WithdrawalContext>>,
    request: Request,
) -> Result<Json<RetriedJson>, ApiError> {
    let (request, body): (_, RetryRequest) = context.read_json(request).await?;
    let PageLimit(limit) = body.limit;
    let filter = FailedFilter {
        pool: body.pool.map(|text| context.parse_any_pool(&text)).transpose()?,
        service_id: body.service_id.as_deref().map(str::parse).transpose()?,
        failed_since: body.failed_since.map(|Time(time)| time),
        reason_contains: body.reason_contains,
    };
    if filter.selects_all() {
        let rule = "at least one of pool, service_id, failed_since and reason_contains is required";
        return Err(ApiError::invalid_value("request", rule));
    }
    let reason = body.reason.ok_or_else(|| ApiError::invalid_value("reason", "it is missing"))?;
    let asked = context.api.actors.request(&request, reason, body.dry_run)?;
    let (store, stored) = (Arc::clone(&context.store.store), context.stored.clone());
    let work = move || {
        if asked.dry_run {
            filter.find(&*store, limit).map_err(ApiError::read_failed)
        } else {
            retry(&filter, limit, &asked, &*store, &stored)
        }
    };
    let found = context.store.writes.run(work).await?;
    let FailedWithdrawals { withdrawals, refused, refused_count, has_more } = found;
    let links = context.api.links(&request);
    let to_json = |failed: FailedWithdrawal| {
        let path = Queued::of(&failed.withdrawal).path(&failed.withdrawal.id);
        FailedWithdrawalJson::new(failed, links.path(&path))
    };
    let refused = refused.into_iter().map(|(failed, error)| RefusedRetryJson::new(failed, error));
    Ok(Json(RetriedJson {
        data: withdrawals.into_iter().map(to_json).collect(),
        refused: refused.collect(),
        refused_count,
        has_more,
    }))
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
