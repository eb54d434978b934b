//! `GET /openapi.json`, the description of the interface, and `GET /docs`, the same as a page.
//!
//! A route is registered together with its description (`routes!`), so none can be without one.

mod page;

use std::sync::LazyLock;

use axum::{
    Router,
    http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName},
    routing,
};
use utoipa::openapi::{
    InfoBuilder, OpenApi, OpenApiBuilder,
    security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
};

use crate::{
    batches, events, gas_admins, health, http::error_schemas, maintenance, metrics, operators,
    reads, rewards, scabbard, tokens, transactions, webhooks, withdrawals,
};

/// The description as JSON.
static JSON: LazyLock<String> = LazyLock::new(openapi_json);
/// The description as a page.
static PAGE: LazyLock<String> = LazyLock::new(|| page::render(&document()));

/// The description of the interface, in the format of `OpenAPI`, as pretty-printed JSON. It has every route, also
/// those that need a configuration, such as the routes of withdrawals.
pub fn openapi_json() -> String {
    document().to_pretty_json().unwrap_or_default() + "\n"
}

/// The routes of the description. They do not describe themselves.
pub(crate) fn routes() -> Router {
    Router::new()
        .route("/openapi.json", routing::get(get_json))
        .route("/docs", routing::get(get_page))
}

async fn get_json() -> ([(HeaderName, &'static str); 1], &'static str) {
    ([(CONTENT_TYPE, "application/json")], &JSON)
}

/// The page has no scripts and loads nothing.
async fn get_page() -> ([(HeaderName, &'static str); 2], &'static str) {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"),
    ];
    (headers, &PAGE)
}

/// The name of the scheme by which clients show their tokens.
const TOKEN: &str = "token";

fn document() -> OpenApi {
    let info = InfoBuilder::new()
        .title("grid-batch")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Submit batches or withdrawals to a distributed ledger once, and follow each to its end.",
        ))
        .build();
    // A server without tokens answers everyone.
    let access = [SecurityRequirement::default(), SecurityRequirement::new(TOKEN, [""; 0])];
    let mut components = error_schemas();
    components.add_security_scheme(TOKEN, SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    let mut document = OpenApiBuilder::new()
        .info(info)
        .components(Some(components))
        .security(Some(access))
        .build();
    for part in [
        batches::intake_routes().into_openapi(),
        batches::status_routes().into_openapi(),
        scabbard::routes().into_openapi(),
        reads::routes().into_openapi(),
        operators::routes().into_openapi(),
        events::routes().into_openapi(),
        withdrawals::routes().into_openapi(),
        rewards::routes().into_openapi(),
        transactions::routes().into_openapi(),
        gas_admins::routes().into_openapi(),
        webhooks::routes().into_openapi(),
        tokens::routes().into_openapi(),
        maintenance::routes().into_openapi(),
        health::routes().into_openapi(),
        metrics::routes().into_openapi(),
    ] {
        document.merge(part);
    }
    document
}
