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
    AccessControl, AccessOptions,
    access::{Authorizer, authorize},
    batches::{self, IntakeContext, ServiceChecks, StatusContext},
    events::{self, EventContext},
    gas_admins::{self, GasAdminContext},
    guard::{RequestGuard, refuse_web_pages},
    health,
    http::{ApiError, discard_body, write_errors},
    openapi,
    operators::{self, OperatorContext},
    parts::ApiParts,
    pass_through::{self, Forwarding},
    reads::{self, ReadContext, ReadParts, ReadSources},
    rewards,
    running::Intake,
    scabbard::{self, ScabbardContext},
    state::ApiState,
    withdrawals::{self, WithdrawalContext},
};

/// All routes of the interface.
pub(crate) fn router(parts: ApiParts, api: Arc<ApiState>, intake: Intake) -> Router {
    let ApiParts { query_store, stored, health, gas_admins, operators, reads, events, .. } = parts;
    let read_sources = parts.read_sources;
    let nodes = Forwarding::new(Arc::clone(&api), parts.pass_through, Arc::clone(&query_store));
    let nodes = Arc::new(nodes);
    let statuses =
        StatusContext::new(Arc::clone(&api), Arc::clone(&query_store), Arc::clone(&nodes));
    let statuses = Arc::new(statuses);
    let operator_store = operators.as_ref().map(|parts| Arc::clone(&parts.store));
    let operators = operators.zip(reads.clone()).map_or_else(Router::new, |(parts, reads)| {
        let (api, queries) = (Arc::clone(&api), Arc::clone(&query_store));
        let context = OperatorContext::new(api, queries, reads.pages, parts, stored.clone());
        operators::routes().with_state(Arc::new(context)).into()
    });
    let event_store = events.clone();
    let events = events.map_or_else(Router::new, |store| {
        let context = EventContext::new(Arc::clone(&api), store);
        events::routes().with_state(Arc::new(context)).into()
    });
    let guard = Arc::new(RequestGuard::new(parts.allowed_sites, api.local_addr.ip()));
    let clock = Arc::clone(&api.clock);
    let access = parts
        .access
        .unwrap_or_else(|| AccessControl::new(AccessOptions::default(), Arc::clone(&clock)));
    let authorizer = Arc::new(Authorizer::new(access, Arc::clone(&api.rates), clock));
    let intake = match intake {
        Intake::Batches(queue) => {
            let rule = Arc::clone(&parts.service_rule);
            let services = ServiceChecks {
                rule: parts.service_rule,
                allowed: parts.allow_lists,
                ledger: parts.service_check,
            };
            let intake = Arc::new(IntakeContext::new(Arc::clone(&api), services, queue));
            let scabbard = ScabbardContext::new(Arc::clone(&intake), Arc::clone(&statuses), rule);
            batch_routes(intake).merge(scabbard::routes().with_state(Arc::new(scabbard)))
        }
        Intake::Withdrawals(parts, queue) => withdrawal_routes(WithdrawalContext::new(
            Arc::clone(&api),
            parts.store,
            parts.rules,
            stored,
            queue,
        )),
    };
    let gas_source = gas_admins.clone();
    let gas_admins = match gas_admins {
        Some(source) => {
            let context = GasAdminContext::new(Arc::clone(&api), source);
            gas_admins::routes().with_state(Arc::new(context)).into()
        }
        None => not_served(gas_admins::PATH),
    };
    let reads = reads.map_or_else(Router::new, |ReadParts { pages, services }| {
        let (api, batches) = (Arc::clone(&api), Arc::clone(&query_store));
        let ReadSources { pauses, ledgers } = read_sources;
        let context = ReadContext {
            api,
            batches,
            pages,
            services,
            gas_admins: gas_source,
            events: event_store,
            operators: operator_store,
            pauses,
            ledgers,
        };
        reads::routes().with_state(Arc::new(context)).into()
    });
    intake
        .merge(gas_admins)
        .merge(reads)
        .merge(operators)
        .merge(events)
        .merge(batches::status_routes().with_state(statuses))
        .merge(health::routes().with_state(health))
        .merge(openapi::routes())
        .fallback(pass_through::fallback(&nodes, |_| ApiError::NotFound))
        .method_not_allowed_fallback(pass_through::fallback(&nodes, method_not_allowed))
        .layer(from_fn_with_state(authorizer, authorize))
        .layer(from_fn_with_state(guard, refuse_web_pages))
        .layer(from_fn(catch_panics_and_log))
        .layer(from_fn(write_errors))
}

fn batch_routes(context: Arc<IntakeContext>) -> Router {
    let not_served = || routing::any(|request| refuse(request, ApiError::WithdrawalsNotServed));
    Router::from(batches::intake_routes().with_state(context))
        .route("/withdrawals", not_served())
        .route("/withdrawals/{*rest}", not_served())
        .route("/rewards", not_served())
        .route("/rewards/{*rest}", not_served())
}

fn withdrawal_routes(context: WithdrawalContext) -> Router {
    let refused = |request| refuse(request, ApiError::BatchesNotServed);
    Router::new()
        .route("/batches", routing::any(refused))
        .route("/v1/batches", routing::post(refused))
        .merge(withdrawals::routes().merge(rewards::routes()).with_state(Arc::new(context)))
}

fn not_served(path: &str) -> Router {
    Router::new()
        .route(path, routing::any(|request| refuse(request, ApiError::WithdrawalsNotServed)))
}

fn method_not_allowed(request: &Request) -> ApiError {
    ApiError::MethodNotAllowed(Excerpt::of(request.method().as_str()))
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
