//! `GET /dashboard`: a page for people. Its files are part of the program; all data comes from the interface, with the
//! token of the reader.

mod files;

use axum::{
    Router,
    extract::Path,
    http::header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
        X_CONTENT_TYPE_OPTIONS,
    },
    response::{IntoResponse, Redirect, Response},
    routing,
};

use crate::http::{ApiError, RequestError};

/// Scripts, styles and requests only from and to this server, nothing inline, and in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The routes of the page. They have no data, so they need no token.
pub(crate) fn routes() -> Router {
    Router::new()
        .route("/", routing::get(async || Redirect::temporary("/dashboard")))
        .route("/dashboard", routing::get(async || page("index.html")))
        .route("/dashboard/{*file}", routing::get(async |Path(name): Path<String>| page(&name)))
}

fn page(name: &str) -> Result<Response, ApiError> {
    let file = files::find(name).ok_or(RequestError::NotFound)?;
    let headers = [
        (CONTENT_TYPE, file.content_type()),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        // A new release is seen at once.
        (CACHE_CONTROL, "no-cache"),
    ];
    Ok((headers, file.text).into_response())
}

#[cfg(test)]
mod tests;
