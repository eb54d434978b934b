use axum::http::request::Parts;

use crate::{access::Caller, http::ApiError};

/// The name that a client may give itself where requests are not authorized.
const HEADER: &str = "grid-batch-actor";
/// The name in the log for requests that are not authorized.
const LOCAL: &str = "local";

/// The name by which the log shows who makes a request. A name that a client gives itself is marked, so
/// that it cannot be taken for one that was authorized.
pub(super) fn name_of(request: &Parts) -> Result<String, ApiError> {
    if let Some(name) = Caller::of(request)?.authorized_name() {
        return Ok(name);
    }
    let Some(given) = request.headers.get(HEADER) else { return Ok(LOCAL.to_owned()) };
    match given.to_str() {
        Ok(name) if (1..=100).contains(&name.len()) => Ok(format!("{LOCAL}/{name}")),
        _ => Err(ApiError::InvalidValue {
            name: "Grid-Batch-Actor",
            rule: "it must have 1 to 100 visible ASCII characters".to_owned(),
        }),
    }
}
