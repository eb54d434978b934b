use std::{sync::Arc, time::Instant};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing,
};
use grid_batch_core::Excerpt;
use grid_batch_support::catch_panic_async;
use log::{debug, error, warn};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    AccessControl, AccessOptions,
    access::{Authorizer, authorize},
    batches::{self, BatchRequestError, IntakeContext, ServiceChecks, StatusContext},
    dashboard,
    events::{self, EventContext},
    gas_admins::{self, GasAdminContext},
    guard::{RequestGuard, refuse_web_pages},
    health::{self, HealthContext},
    http::{ApiError, RequestError, ServerError, discard_body, write_errors},
    maintenance,
    metrics::{self, MetricsContext, RequestMetrics, count_requests},
    openapi,
    operators::{self, OperatorContext},
    parts::{ApiParts, WithdrawalParts},
    pass_through::Forwarding,
    reads::{self, ReadContext, Served},
    rewards,
    running::Intake,
    scabbard::{self, ScabbardContext},
    state::{ApiState, StoreContext},
    tokens::{self, TokenContext},
    transactions,
    webhooks::{self, WebhookContext},
    withdrawals::{self, WithdrawalContext, WithdrawalRequestError},
};

/// All routes of the interface.
pub(crate) fn router(parts: ApiParts, api: Arc<ApiState>, intake: Intake) -> Router {
    let requests = Arc::new(RequestMetrics::new());
    let guard = RequestGuard::new(parts.allowed_sites.clone(), api.local_addr.ip());
    let authorizer = authorizer(&parts, &api);
    let nodes = Forwarding::new(&api, parts.pass_through.clone(), &parts.query_store);
    let nodes = Arc::new(nodes);
    let statuses = Arc::new(StatusContext::new(&api, &parts, &nodes));
    // For requests that nothing here serves: `refused` is the answer to those that the ledger does not serve either.
    let passed_on = |refused: fn(&Request) -> ApiError| {
        let nodes = Arc::clone(&nodes);
        move |request: Request| async move {
            let refused = refused(&request);
            nodes.answer(request, refused).await
        }
    };
    Router::new()
        .merge(gas_admin_routes(&parts, &api))
        .merge(read_routes(&parts, &api, &intake))
        .merge(operator_routes(&parts, &api))
        .merge(optional(&parts.events, |store| {
            with_context(events::routes(), EventContext::new(Arc::clone(&api), store))
        }))
        .merge(optional(&parts.webhooks, |parts| {
            with_context(webhooks::routes(), WebhookContext::new(&api, parts))
        }))
        .merge(optional(&parts.tokens, |store| {
            with_context(tokens::routes(), TokenContext::new(&api, store, &parts))
        }))
        .merge(optional(&parts.maintenance, |maintenance| {
            // One decision is carried out at once.
            with_context(maintenance::routes(), StoreContext::new(&api, maintenance, 1))
        }))
        .merge(batches::status_routes().with_state(Arc::clone(&statuses)))
        .merge(health_routes(&parts, &api))
        .merge(metrics_routes(&parts, &requests))
        .merge(openapi::routes())
        .merge(dashboard::routes())
        .merge(intake_routes(parts, api, intake, statuses))
        .fallback(passed_on(|_| RequestError::NotFound.into()))
        .method_not_allowed_fallback(passed_on(method_not_allowed))
        .layer(from_fn_with_state(Arc::new(AroundRoutes { requests, guard, authorizer }), serve))
}

/// What all requests need before and after their routes.
struct AroundRoutes {
    requests: Arc<RequestMetrics>,
    guard: RequestGuard,
    authorizer: Authorizer,
}

/// Answers a request of any route. Layers of their own would copy the routes and allocate for each request.
async fn serve(State(around): State<Arc<AroundRoutes>>, request: Request, next: Next) -> Response {
    let AroundRoutes { requests, guard, authorizer } = &*around;
    let authorized = |request| authorize(authorizer, request, |request| next.run(request));
    let guarded = |request| refuse_web_pages(guard, request, authorized);
    let logged = |request| catch_panics_and_log(request, guarded);
    let written = |request| write_errors(request, logged);
    count_requests(requests, request, written).await
}

fn authorizer(parts: &ApiParts, api: &ApiState) -> Authorizer {
    let clock = || Arc::clone(&api.clock);
    let open = || AccessControl::new(AccessOptions::default(), clock());
    let access = parts.access.clone().unwrap_or_else(open);
    Authorizer::new(access, Arc::clone(&api.rates), clock())
}

fn intake_routes(
    parts: ApiParts,
    api: Arc<ApiState>,
    intake: Intake,
    statuses: Arc<StatusContext>,
) -> Router {
    match intake {
        Intake::Batches(queue) => {
            let Some(format) = parts.format else { return Router::new() };
            let rule = Arc::clone(&parts.service_rule);
            let services = ServiceChecks {
                rule: parts.service_rule,
                allowed: parts.allow_lists,
                ledger: parts.ledger,
            };
            let intake = Arc::new(IntakeContext::new(api, format, services, parts.received, queue));
            let scabbard = ScabbardContext { intake: Arc::clone(&intake), statuses, rule };
            batch_routes(intake).merge(scabbard::routes().with_state(Arc::new(scabbard)))
        }
        Intake::Withdrawals(withdrawals, queue) => {
            let WithdrawalParts { store, rules } = withdrawals;
            let (store, stored) = (api.store(store, withdrawals::WRITES), parts.stored);
            let calls = parts.calls;
            withdrawal_routes(WithdrawalContext { api, store, stored, queue, rules, calls })
        }
    }
}

fn gas_admin_routes(parts: &ApiParts, api: &Arc<ApiState>) -> Router {
    let Some(source) = parts.gas_admins.clone() else { return not_served(gas_admins::PATH) };
    with_context(gas_admins::routes(), GasAdminContext { api: Arc::clone(api), source })
}

fn read_routes(parts: &ApiParts, api: &Arc<ApiState>, intake: &Intake) -> Router {
    if !parts.serves_reads {
        return Router::new();
    }
    let context = ReadContext {
        api: Arc::clone(api),
        batches: Arc::clone(&parts.query_store),
        gas_admins: parts.gas_admins.clone(),
        events: parts.events.clone(),
        operators: parts.operators.clone(),
        withdrawals: match intake {
            Intake::Withdrawals(withdrawals, _) => Some(Arc::clone(&withdrawals.store)),
            Intake::Batches(_) => None,
        },
        format: parts.format.clone(),
        serves: Served::of(parts, intake),
        sources: parts.read_sources.clone(),
    };
    with_context(reads::routes(), context)
}

fn operator_routes(parts: &ApiParts, api: &Arc<ApiState>) -> Router {
    let Some(operators) = parts.operators.clone().filter(|_| parts.serves_reads) else {
        return Router::new();
    };
    let context = OperatorContext {
        api: Arc::clone(api),
        queries: Arc::clone(&parts.query_store),
        writes_of_many: api.store(Arc::clone(&operators), operators::MANY).writes,
        store: api.store(operators, operators::WRITES),
        stored: parts.stored.clone(),
        recall: Arc::clone(&parts.recall),
    };
    with_context(operators::routes(), context)
}

/// The routes of an area, if the interface has what they need.
fn optional<T: Clone>(part: &Option<T>, routes: impl FnOnce(T) -> Router) -> Router {
    part.clone().map_or_else(Router::new, routes)
}

fn with_context<C: Send + Sync + 'static>(routes: OpenApiRouter<Arc<C>>, context: C) -> Router {
    routes.with_state(Arc::new(context)).into()
}

fn health_routes(parts: &ApiParts, api: &ApiState) -> Router {
    let source = Arc::clone(&parts.health);
    with_context(health::routes(), HealthContext { source, shutdown: api.shutdown.clone() })
}

fn metrics_routes(parts: &ApiParts, requests: &Arc<RequestMetrics>) -> Router {
    let source = Arc::clone(&parts.metrics);
    with_context(metrics::routes(), MetricsContext { source, requests: Arc::clone(requests) })
}

fn batch_routes(context: Arc<IntakeContext>) -> Router {
    let not_served =
        || routing::any(|request| refuse(request, WithdrawalRequestError::WithdrawalsNotServed));
    Router::from(batches::intake_routes().with_state(context))
        .route("/withdrawals", not_served())
        .route("/withdrawals/{*rest}", not_served())
        .route("/rewards", not_served())
        .route("/rewards/{*rest}", not_served())
        .merge(transactions_not_served())
}

fn withdrawal_routes(context: WithdrawalContext) -> Router {
    let refused = |request| refuse(request, BatchRequestError::BatchesNotServed);
    let context = Arc::new(context);
    let transactions = match context.calls {
        Some(_) => transactions::routes().with_state(Arc::clone(&context)).into(),
        None => transactions_not_served(),
    };
    Router::new()
        .route("/batches", routing::any(refused))
        .route("/v1/batches", routing::post(refused))
        .merge(withdrawals::routes().merge(rewards::routes()).with_state(context))
        .merge(transactions)
}

fn transactions_not_served() -> Router {
    let refused = |request| refuse(request, WithdrawalRequestError::TransactionsNotServed);
    Router::new()
        .route("/v1/transactions", routing::any(refused))
        .route("/v1/transactions/{*rest}", routing::any(refused))
}

fn not_served(path: &str) -> Router {
    Router::new().route(
        path,
        routing::any(|request| refuse(request, WithdrawalRequestError::WithdrawalsNotServed)),
    )
}

fn method_not_allowed(request: &Request) -> ApiError {
    RequestError::MethodNotAllowed(Excerpt::of(request.method().as_str())).into()
}

/// Answers with an error, whatever the body is.
async fn refuse(request: Request, error: impl Into<ApiError>) -> ApiError {
    let (request, body) = request.into_parts();
    discard_body(&request.headers, body);
    error.into()
}

/// Turns a panic of a handler into an answer, and logs every request.
async fn catch_panics_and_log<R: Future<Output = Response>>(
    request: Request,
    next: impl FnOnce(Request) -> R,
) -> Response {
    let started = Instant::now();
    let method = Excerpt::of(request.method().as_str());
    let path = Excerpt::of(request.uri().path());
    let response = catch_panic_async(next(request)).await.unwrap_or_else(|panic| {
        error!(method:%, path:%, panic:%; "request handler panicked");
        ApiError::from(ServerError::Internal).into_response()
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
