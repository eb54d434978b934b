use axum::http::request::Parts;

use crate::http::ApiError;

/// Who makes a request. What authorizes requests puts it into their extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor(pub String);

/// The name that a client may give itself where requests are not authorized.
const HEADER: &str = "grid-batch-actor";
/// The name in the log for requests that are not authorized.
const LOCAL: &str = "local";

/// The name by which the log shows who makes a request. A name that a client gives itself is marked, so
/// that it cannot be taken for one that was authorized.
pub(super) fn name_of(request: &Parts) -> Result<String, ApiError> {
    if let Some(Actor(name)) = request.extensions.get() {
        return Ok(name.clone());
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
