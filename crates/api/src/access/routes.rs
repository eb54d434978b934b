//! What a request needs, by its route. A test compares this with the routes of the router.

use axum::http::Method;
use grid_batch_core::tokens::AccessScope;

/// What the requests of a route need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing, from everyone.
    Nothing,
    /// What the operator has configured for health and metrics; otherwise a token with the scope `read`.
    Health(Coverage),
    /// A token with this scope.
    Scope(AccessScope, Coverage),
}

/// For which services a token must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coverage {
    /// Those that the request is about: its handler asks [`Caller`](super::Caller).
    Some,
    /// All: what the handler answers or does is not limited to services.
    All,
}

/// Any method.
const ANY: &str = "*";

const SUBMIT: Needs = Needs::Scope(AccessScope::Submit, Coverage::Some);
const READ: Needs = Needs::Scope(AccessScope::Read, Coverage::Some);
const SUBMIT_ALL: Needs = Needs::Scope(AccessScope::Submit, Coverage::All);
const READ_ALL: Needs = Needs::Scope(AccessScope::Read, Coverage::All);
const OPERATE: Needs = Needs::Scope(AccessScope::Operate, Coverage::Some);
const OPERATE_ALL: Needs = Needs::Scope(AccessScope::Operate, Coverage::All);

/// Method, path and needs of each route.
pub(super) const ROUTES: &[(&str, &str, Needs)] = &[
    ("GET", "/health/live", Needs::Nothing),
    ("GET", "/health", Needs::Health(Coverage::Some)),
    ("GET", "/health/ready", Needs::Health(Coverage::Some)),
    // They name services.
    ("GET", "/metrics", Needs::Health(Coverage::All)),
    ("POST", "/batches", SUBMIT),
    ("GET", "/batch_statuses", READ),
    // It reads statuses, too: of more batches than a URL can name.
    ("POST", "/batch_statuses", READ),
    ("POST", "/scabbard/{circuit}/{service}/batches", SUBMIT),
    ("GET", "/scabbard/{circuit}/{service}/batch_statuses", READ),
    ("POST", "/v1/batches", SUBMIT),
    ("GET", "/v1/batches", READ),
    ("GET", "/v1/batches/{id}", READ),
    ("GET", "/v1/batches/{id}/bytes", READ),
    ("GET", "/v1/batches/{id}/content", READ),
    ("GET", "/v1/batches/{id}/explain", READ),
    ("GET", "/v1/services", READ_ALL),
    ("GET", "/v1/services/{id}", READ),
    ("GET", "/v1/services/{id}/explain", READ),
    ("GET", "/v1/claims", READ_ALL),
    ("GET", "/v1/ledgers", READ_ALL),
    ("GET", "/v1/history", READ_ALL),
    ("GET", "/v1/counts", READ_ALL),
    ("GET", "/v1/access", READ),
    ("GET", "/v1/events", READ),
    ("GET", "/v1/events/stream", READ),
    ("POST", "/v1/batches/actions", OPERATE),
    ("POST", "/v1/batches/{id}/retry", OPERATE),
    ("POST", "/v1/batches/{id}/resubmit", OPERATE),
    ("POST", "/v1/batches/{id}/end", OPERATE),
    ("POST", "/v1/batches/{id}/cancel", OPERATE),
    ("POST", "/v1/batches/{id}/hold", OPERATE),
    ("POST", "/v1/batches/{id}/release", OPERATE),
    ("POST", "/v1/batches/{id}/continue", OPERATE),
    ("POST", "/v1/batches/{id}/end-following", OPERATE),
    ("POST", "/v1/services/{id}/pause", OPERATE),
    ("POST", "/v1/services/{id}/resume", OPERATE),
    ("POST", "/v1/services/{id}/nonces/elsewhere", OPERATE),
    ("POST", "/v1/services/{id}/nonces/start", OPERATE),
    ("POST", "/v1/services/{id}/nonces/fill", OPERATE),
    ("POST", "/v1/services/{id}/nonces/paid", OPERATE),
    ("POST", "/v1/claims/{id}/release", OPERATE),
    ("POST", "/v1/instances/{id}/drain", OPERATE_ALL),
    ("POST", "/v1/instances/{id}/resume", OPERATE_ALL),
    ("POST", "/v1/pause", OPERATE_ALL),
    ("POST", "/v1/resume", OPERATE_ALL),
    ("GET", "/v1/operator-actions", OPERATE),
    ("GET", "/v1/halts", READ_ALL),
    ("GET", "/v1/nonces", READ_ALL),
    // A webhook may get the events of all services, and its URL may have a secret in it.
    ("GET", "/v1/webhooks", OPERATE_ALL),
    ("POST", "/v1/webhooks", OPERATE_ALL),
    ("GET", "/v1/webhooks/{id}", OPERATE_ALL),
    ("DELETE", "/v1/webhooks/{id}", OPERATE_ALL),
    ("GET", "/v1/webhooks/{id}/failed", OPERATE_ALL),
    ("POST", "/v1/webhooks/{id}/redeliver", OPERATE_ALL),
    ("POST", "/v1/webhooks/{id}/change", OPERATE_ALL),
    ("POST", "/v1/webhooks/{id}/rotate", OPERATE_ALL),
    ("POST", "/v1/webhooks/{id}/pause", OPERATE_ALL),
    ("POST", "/v1/webhooks/{id}/resume", OPERATE_ALL),
    ("POST", "/v1/webhooks/{id}/ping", OPERATE_ALL),
    ("GET", "/v1/tokens", OPERATE_ALL),
    ("POST", "/v1/tokens", OPERATE_ALL),
    ("POST", "/v1/tokens/{id}/revoke", OPERATE_ALL),
    ("POST", "/v1/database/restored", OPERATE_ALL),
    ("GET", "/v1/database/ledger", OPERATE_ALL),
    ("POST", "/v1/database/adopt-ledger", OPERATE_ALL),
    ("POST", "/v1/database/move-withdrawals", OPERATE_ALL),
    ("POST", "/v1/database/remove-ended", OPERATE_ALL),
    // They tell nothing about a server but its version.
    ("GET", "/openapi.json", Needs::Nothing),
    ("GET", "/docs", Needs::Nothing),
    // The page has no data: its requests have the token.
    ("GET", "/", Needs::Nothing),
    ("GET", "/dashboard", Needs::Nothing),
    ("GET", "/dashboard/{*file}", Needs::Nothing),
    ("GET", "/v1/gas-admins", READ_ALL),
    ("GET", "/withdrawals", READ_ALL),
    ("POST", "/withdrawals", SUBMIT_ALL),
    ("POST", "/withdrawals/retry", OPERATE_ALL),
    ("GET", "/withdrawals/{id}", READ_ALL),
    ("POST", "/withdrawals/{id}/retry", OPERATE_ALL),
    ("POST", "/withdrawals/{id}/cancel", SUBMIT_ALL),
    ("POST", "/rewards", SUBMIT_ALL),
    ("GET", "/rewards/{id}", READ_ALL),
    ("POST", "/rewards/{id}/claim", SUBMIT_ALL),
    ("POST", "/rewards/{id}/give", SUBMIT_ALL),
    ("GET", "/v1/transactions", READ_ALL),
    ("POST", "/v1/transactions", SUBMIT_ALL),
    ("GET", "/v1/transactions/{id}", READ_ALL),
    ("POST", "/v1/transactions/{id}/retry", OPERATE_ALL),
    ("POST", "/v1/transactions/{id}/cancel", SUBMIT_ALL),
    ("POST", "/v1/transactions/{id}/speed-up", SUBMIT_ALL),
    // Routes that only say that something is not served here.
    (ANY, "/batches", READ_ALL),
    (ANY, "/withdrawals", READ_ALL),
    (ANY, "/withdrawals/{*rest}", READ_ALL),
    (ANY, "/rewards", READ_ALL),
    (ANY, "/rewards/{*rest}", READ_ALL),
    (ANY, "/v1/gas-admins", READ_ALL),
    (ANY, "/v1/transactions", READ_ALL),
    (ANY, "/v1/transactions/{*rest}", READ_ALL),
];

/// Method and path of each route.
#[cfg(test)]
pub(crate) fn routes_of_table() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROUTES.iter().map(|(method, path, _)| (*method, *path))
}

/// What a request needs. One that is not in the table needs most of all, so that a route which was forgotten
/// there is open to few.
pub(super) fn needs(method: &Method, path: Option<&str>) -> Needs {
    // The handlers of GET answer HEAD.
    let method = if method == Method::HEAD { Method::GET } else { method.clone() };
    // No route: a node is asked, which only reads. The handler asks the caller.
    let Some(path) = path else { return READ };
    let find = |method: &str| {
        ROUTES.iter().find(|(m, p, _)| *m == method && *p == path).map(|(_, _, needs)| *needs)
    };
    find(method.as_str()).or_else(|| find(ANY)).unwrap_or(OPERATE_ALL)
}
