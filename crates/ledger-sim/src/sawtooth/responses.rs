use hyper::{StatusCode, header};
use serde::Serialize;

use super::to_pretty_json;
use crate::response::SimResponse;

const JSON: &str = "application/json; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const SERVER: &str = "Python/3.7 aiohttp/3.7.4.post0";

/// An error with a code of the REST API.
#[derive(Debug)]
pub(super) struct RestError {
    status: StatusCode,
    code: u16,
    title: &'static str,
    message: &'static str,
}

pub(super) const UNKNOWN_ERROR: RestError = RestError {
    status: StatusCode::INTERNAL_SERVER_ERROR,
    code: 10,
    title: "Unknown Validator Error",
    message: "An unknown error occurred with the validator while processing your request.",
};
pub(super) const TIMED_OUT: RestError = RestError {
    status: StatusCode::SERVICE_UNAVAILABLE,
    code: 17,
    title: "Validator Timed Out",
    message: "The request timed out while waiting for a response from the validator. \
              Your request may or may not have been processed.",
};
pub(super) const DISCONNECTED: RestError = RestError {
    status: StatusCode::SERVICE_UNAVAILABLE,
    code: 18,
    title: "Validator Disconnected",
    message: "The validator disconnected before sending a response.",
};
pub(super) const SUBMITTED_INVALID: RestError = RestError {
    status: StatusCode::BAD_REQUEST,
    code: 30,
    title: "Submitted Batches Invalid",
    message: "The submitted BatchList was rejected by the validator. It was poorly formed, \
              or has an invalid signature.",
};
pub(super) const QUEUE_FULL: RestError = RestError {
    status: StatusCode::TOO_MANY_REQUESTS,
    code: 31,
    title: "Unable to Accept Batches",
    // Two spaces, as in the real message.
    message: "The validator cannot currently accept more batches, due to a full queue.  \
              Please submit your request again.",
};
pub(super) const NO_BATCHES: RestError = RestError {
    status: StatusCode::BAD_REQUEST,
    code: 34,
    title: "No Batches Submitted",
    message: "The protobuf BatchList you submitted was empty and contained no Batches. \
              You must submit at least one Batch.",
};
pub(super) const UNDECODABLE: RestError = RestError {
    status: StatusCode::BAD_REQUEST,
    code: 35,
    title: "Protobuf Not Decodable",
    message: "The protobuf BatchList you submitted was malformed and could not be read.",
};
pub(super) const SUBMISSION_TYPE: RestError = RestError {
    status: StatusCode::BAD_REQUEST,
    code: 42,
    title: "Wrong Content Type",
    message: "Batches must be submitted in a BatchList protobuf binary, with a 'Content-Type' \
              header of 'application/octet-stream'.",
};
pub(super) const STATUSES_TYPE: RestError = RestError {
    status: StatusCode::BAD_REQUEST,
    code: 43,
    title: "Wrong Content Type",
    message: "Requests for batch statuses sent as a POST must have a 'Content-Type' header of \
              'application/json'.",
};
pub(super) const NO_JSON_IDS: RestError = RestError {
    status: StatusCode::BAD_REQUEST,
    code: 46,
    title: "Bad Status Request",
    message: "Requests for batch statuses sent as a POST must have a JSON formatted body with \
              an array of at least one id string.",
};
pub(super) const INVALID_ID: RestError = RestError {
    status: StatusCode::BAD_REQUEST,
    code: 60,
    title: "Invalid Resource Id",
    message: "Blockchain items are identified by 128 character hex-strings. A submitted block, \
              batch, or transaction id was invalid: ",
};
pub(super) const NO_ID_QUERY: RestError = RestError {
    status: StatusCode::BAD_REQUEST,
    code: 66,
    title: "Id Query Invalid or Missing",
    message: "Requests for batch statuses sent as a GET request must have an 'id' query \
              parameter with a comma-separated list of at least one batch id.",
};
pub(super) const BATCH_NOT_FOUND: RestError = RestError {
    status: StatusCode::NOT_FOUND,
    code: 71,
    title: "Batch Not Found",
    message: "There is no batch with the id specified in the blockchain.",
};
pub(super) const TRANSACTION_NOT_FOUND: RestError = RestError {
    status: StatusCode::NOT_FOUND,
    code: 72,
    title: "Transaction Not Found",
    message: "There is no transaction with the id specified in the blockchain.",
};

pub(super) const BLOCK_NOT_FOUND: RestError = RestError {
    status: StatusCode::NOT_FOUND,
    code: 70,
    title: "Block Not Found",
    message: "There is no block with the id specified in the blockchain.",
};
pub(super) const STATE_NOT_FOUND: RestError = RestError {
    status: StatusCode::NOT_FOUND,
    code: 75,
    title: "State Not Found",
    message: "There is no state data at the address specified.",
};
pub(super) const INVALID_ADDRESS: RestError = RestError {
    status: StatusCode::BAD_REQUEST,
    code: 62,
    title: "Invalid State Address",
    message: "The state address submitted was invalid. To fetch specific state data, you must submit the \
              full 70-character address.",
};
pub(super) const INVALID_PAGING: RestError = RestError {
    status: StatusCode::BAD_REQUEST,
    code: 54,
    title: "Invalid Paging Query",
    message: "Paging request failed as written. One or more of the 'start' or 'limit' query \
              parameters were invalid or out of range.",
};

/// The REST API sorts the keys alphabetically.
#[derive(Serialize)]
struct Envelope {
    error: Content,
}

#[derive(Serialize)]
struct Content {
    code: u16,
    message: String,
    title: &'static str,
}

impl RestError {
    pub(super) fn response(&self) -> SimResponse {
        self.response_with_value("")
    }

    /// A response whose message ends with the invalid value.
    pub(super) fn response_with_value(&self, value: &str) -> SimResponse {
        let Self { status, code, title, message } = *self;
        let content = Content { code, message: format!("{message}{value}"), title };
        json(status, &Envelope { error: content })
    }
}

pub(super) fn json(status: StatusCode, value: &impl Serialize) -> SimResponse {
    SimResponse::new(status, JSON, to_pretty_json(value)).with_header(header::SERVER, SERVER)
}

fn text(status: StatusCode, text: impl Into<String>) -> SimResponse {
    SimResponse::new(status, TEXT, text.into()).with_header(header::SERVER, SERVER)
}

/// The response of aiohttp for an uncaught exception.
pub(super) fn server_error() -> SimResponse {
    let body = "500 Internal Server Error\n\nServer got itself in trouble";
    text(StatusCode::INTERNAL_SERVER_ERROR, body).closing()
}

pub(super) fn too_long(limit: usize, read: usize) -> SimResponse {
    let body = format!("Maximum request body size {limit} exceeded, actual body size {read}");
    text(StatusCode::PAYLOAD_TOO_LARGE, body).with_reason("Request Entity Too Large")
}

pub(super) fn line_too_long(limit: usize, length: usize) -> SimResponse {
    let body =
        format!("Got more than {limit} bytes ({length}) when reading Status line is too long.");
    text(StatusCode::BAD_REQUEST, body).closing()
}

pub(super) fn no_upgrade() -> SimResponse {
    let body = "No WebSocket UPGRADE hdr: None\n Can \"Upgrade\" only to \"WebSocket\".";
    text(StatusCode::BAD_REQUEST, body)
}

pub(super) fn not_found() -> SimResponse {
    text(StatusCode::NOT_FOUND, "404: Not Found")
}

pub(super) fn method_not_allowed(allowed: &'static str) -> SimResponse {
    text(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed")
        .with_header(header::ALLOW, allowed)
}
