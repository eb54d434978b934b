use std::{sync::Arc, time::Instant};

use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing,
};
use grid_batch_core::Excerpt;
use grid_batch_support::catch_panic_async;
use log::{debug, error, warn};

use crate::{
    batches::{self, IntakeContext, ServiceChecks, StatusContext},
    gas_admins::{self, GasAdminContext},
    guard::{RequestGuard, refuse_web_pages},
    health::{self, HealthContext},
    http::{ApiError, discard_body, write_errors},
    metrics::{self, MetricsContext, RequestMetrics, count_requests},
    openapi,
    parts::ApiParts,
    rewards,
    running::Intake,
    state::ApiState,
    withdrawals::{self, WithdrawalContext},
};

/// All routes of the interface.
pub(crate) fn router(parts: ApiParts, api: Arc<ApiState>, intake: Intake) -> Router {
    let ApiParts { query_store, stored, health, metrics, gas_admins, .. } = parts;
    let requests = Arc::new(RequestMetrics::new());
    let metrics = Arc::new(MetricsContext { source: metrics, requests: Arc::clone(&requests) });
    let health = Arc::new(HealthContext { source: health, shutdown: api.shutdown.clone() });
    let guard = Arc::new(RequestGuard::new(parts.allowed_sites, api.local_addr.ip()));
    let intake = match intake {
        Intake::Batches(queue) => {
            let services = ServiceChecks {
                rule: parts.service_rule,
                allowed: parts.allow_lists,
                ledger: parts.service_check,
            };
            let api = Arc::clone(&api);
            batch_routes(IntakeContext::new(api, services, parts.received, queue))
        }
        Intake::Withdrawals(parts, queue) => withdrawal_routes(WithdrawalContext::new(
            Arc::clone(&api),
            parts.store,
            parts.rules,
            stored,
            queue,
        )),
    };
    let gas_admins = match gas_admins {
        Some(source) => {
            let context = GasAdminContext::new(Arc::clone(&api), source);
            gas_admins::routes().with_state(Arc::new(context)).into()
        }
        None => not_served(gas_admins::PATH),
    };
    intake
        .merge(gas_admins)
        .merge(batches::status_routes().with_state(Arc::new(StatusContext::new(api, query_store))))
        .merge(health::routes().with_state(health))
        .merge(metrics::routes().with_state(metrics))
        .merge(openapi::routes())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(guard, refuse_web_pages))
        .layer(from_fn(catch_panics_and_log))
        .layer(from_fn(write_errors))
        .layer(from_fn_with_state(requests, count_requests))
}

fn batch_routes(context: IntakeContext) -> Router {
    let not_served = || routing::any(|request| refuse(request, ApiError::WithdrawalsNotServed));
    Router::from(batches::intake_routes().with_state(Arc::new(context)))
        .route("/withdrawals", not_served())
        .route("/withdrawals/{*rest}", not_served())
        .route("/rewards", not_served())
        .route("/rewards/{*rest}", not_served())
}

fn withdrawal_routes(context: WithdrawalContext) -> Router {
    Router::new()
        .route("/batches", routing::any(|request| refuse(request, ApiError::BatchesNotServed)))
        .merge(withdrawals::routes().merge(rewards::routes()).with_state(Arc::new(context)))
}

fn not_served(path: &str) -> Router {
    Router::new()
        .route(path, routing::any(|request| refuse(request, ApiError::WithdrawalsNotServed)))
}

async fn not_found(request: Request) -> ApiError {
    refuse(request, ApiError::NotFound).await
}

async fn method_not_allowed(request: Request) -> ApiError {
    let method = Excerpt::of(request.method().as_str());
    refuse(request, ApiError::MethodNotAllowed(method)).await
}

/// Answers with an error, whatever the body is.
async fn refuse(request: Request, error: ApiError) -> ApiError {
    let (request, body) = request.into_parts();
    discard_body(&request.headers, body);
    error
}

/// Turns a panic of a handler into an answer, and logs every request.
async fn catch_panics_and_log(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = Excerpt::of(request.method().as_str());
    let path = Excerpt::of(request.uri().path());
    let response = catch_panic_async(next.run(request)).await.unwrap_or_else(|panic| {
        error!(method:%, path:%, panic:%; "request handler panicked");
        ApiError::Internal.into_response()
    });
    let status = response.status();
    let elapsed_ms = started.elapsed().as_millis();
    if status.is_server_error() {
        warn!(method:%, path:%, status = status.as_u16(), elapsed_ms; "request failed");
    } else {
        debug!(method:%, path:%, status = status.as_u16(), elapsed_ms; "request finished");
    }
    response
}
