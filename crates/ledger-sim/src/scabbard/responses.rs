use hyper::{
    StatusCode,
    header::{ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderName},
};
use serde::Serialize;
use serde_json::json as value;

use crate::response::SimResponse;

const JSON: &str = "application/json";
const CREDENTIALS: (HeaderName, &str) = (ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");

/// An error with a code, which is equal to the status.
#[derive(Debug)]
pub(super) struct RestError {
    status: StatusCode,
    message: &'static str,
}

pub(super) const INVALID_BODY: RestError = RestError {
    status: StatusCode::BAD_REQUEST,
    message: "Invalid body: not a valid list of batches",
};
pub(super) const NO_VALID_BATCHES: RestError =
    RestError { status: StatusCode::BAD_REQUEST, message: "No valid batches provided" };
pub(super) const NO_IDS: RestError =
    RestError { status: StatusCode::BAD_REQUEST, message: "No batch IDs specified" };
pub(super) const NO_LAST_EVENT: RestError =
    RestError { status: StatusCode::BAD_REQUEST, message: "Invalid last_seen_event" };
pub(super) const UNAUTHORIZED: RestError =
    RestError { status: StatusCode::UNAUTHORIZED, message: "Client is not authorized" };
pub(super) const SERVER_ERROR: RestError = RestError {
    status: StatusCode::INTERNAL_SERVER_ERROR,
    message: "The server encountered an error",
};

#[derive(Serialize)]
struct Content {
    code: String,
    message: &'static str,
}

impl RestError {
    pub(super) fn response(&self) -> SimResponse {
        let (name, value) = CREDENTIALS;
        self.bare_response().with_header(name, value)
    }

    /// The response without the header that is added after authorization.
    pub(super) fn bare_response(&self) -> SimResponse {
        let code = self.status.as_str().to_owned();
        bare_json(self.status, &Content { code, message: self.message })
    }
}

pub(super) fn json(status: StatusCode, body: &impl Serialize) -> SimResponse {
    let (name, value) = CREDENTIALS;
    bare_json(status, body).with_header(name, value)
}

fn bare_json(status: StatusCode, body: &impl Serialize) -> SimResponse {
    SimResponse::new(status, JSON, serde_json::to_vec(body).unwrap_or_default())
}

/// An empty list.
pub(super) fn empty_list() -> SimResponse {
    let paging = value!({ "current": "/", "offset": 0, "limit": 100, "total": 0 });
    json(StatusCode::OK, &value!({ "data": [], "paging": paging }))
}

/// Without `Retry-After`, as from a real node.
pub(super) fn busy() -> SimResponse {
    let (name, value) = CREDENTIALS;
    SimResponse::empty(StatusCode::TOO_MANY_REQUESTS).with_header(name, value)
}

pub(super) fn no_such_endpoint() -> SimResponse {
    RestError { status: StatusCode::NOT_FOUND, message: "endpoint not found" }.bare_response()
}

pub(super) fn bad_header() -> SimResponse {
    let message = "Authorization header must contain only visible ASCII characters";
    RestError { status: StatusCode::BAD_REQUEST, message }.bare_response()
}

pub(super) fn no_state() -> SimResponse {
    RestError { status: StatusCode::NOT_FOUND, message: "Address not found" }.response()
}

pub(super) fn no_such_service(circuit: &str, service: &str) -> SimResponse {
    let message = format!("scabbard service {service} on circuit {circuit} not found");
    json(StatusCode::NOT_FOUND, &value!({ "message": message }))
}
