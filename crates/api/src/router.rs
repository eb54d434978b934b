use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Instant};

use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing,
};
use futures_util::FutureExt;
use grid_batch_core::Excerpt;
use grid_batch_withdrawals::WithdrawalRules;
use log::{debug, error, warn};

use crate::{
    app::App, batches, body::discard, error::ApiError, health, pools::Pools, rewards, statuses,
    withdrawals,
};

pub(crate) fn router(app: Arc<App>) -> Router {
    let taken = match app.parts.rules.clone() {
        Some(rules) => withdrawals_instead_of_batches(Arc::clone(&app), rules),
        None => batches_only(),
    };
    taken
        .route("/batch_statuses", routing::get(statuses::get).post(statuses::post))
        .route("/health", routing::get(health::get))
        .fallback(not_found)
        .method_not_allowed_fallback(other_method)
        .layer(from_fn(answer))
        .with_state(app)
}

fn batches_only() -> Router<Arc<App>> {
    let without_pools = || routing::any(|request| refuse(request, ApiError::NoPools));
    Router::new()
        .route("/batches", routing::post(batches::submit))
        .route("/withdrawals", without_pools())
        .route("/withdrawals/{*rest}", without_pools())
        .route("/rewards", without_pools())
        .route("/rewards/{*rest}", without_pools())
}

fn withdrawals_instead_of_batches(
    app: Arc<App>,
    rules: Arc<dyn WithdrawalRules>,
) -> Router<Arc<App>> {
    let pools = Arc::new(Pools { app, rules });
    Router::new()
        .route("/batches", routing::any(|request| refuse(request, ApiError::NoBatchesHere)))
        .merge(withdrawals::routes().with_state(Arc::clone(&pools)))
        .merge(rewards::routes().with_state(pools))
}

async fn not_found(request: Request) -> ApiError {
    refuse(request, ApiError::NotFound).await
}

async fn other_method(request: Request) -> ApiError {
    let method = Excerpt::of(request.method().as_str());
    refuse(request, ApiError::Method(method)).await
}

/// Refuses whatever is sent to an address.
async fn refuse(request: Request, error: ApiError) -> ApiError {
    let (request, body) = request.into_parts();
    discard(&request.headers, body);
    error
}

/// Answers even where a handler panics, and logs.
async fn answer(request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = Excerpt::of(request.method().as_str());
    let path = Excerpt::of(request.uri().path());
    let response =
        AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|panic| {
            error!(panic = message(&*panic); "a request panicked");
            ApiError::Internal.into_response()
        });
    let status = response.status();
    let elapsed_ms = begun.elapsed().as_millis();
    if status.is_server_error() {
        warn!(method:%, path:%, status = status.as_u16(), elapsed_ms; "answered");
    } else {
        debug!(method:%, path:%, status = status.as_u16(), elapsed_ms; "answered");
    }
    response
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
