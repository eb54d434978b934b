use std::time::Duration;

use grid_batch_core::Excerpt;

use crate::http::{OtherContentType, refusals};

refusals! {
    /// A request is malformed, or goes to a path that does not exist.
    pub(crate) enum RequestError {
        #[error("this path does not exist")]
        [NOT_FOUND, 1001, "Not Found"]
        NotFound,
        #[error("this path does not support the method {0}")]
        [METHOD_NOT_ALLOWED, 1002, "Method Not Allowed"]
        MethodNotAllowed(Excerpt),
        #[error("the body is longer than {limit} bytes; send it in parts")]
        [PAYLOAD_TOO_LARGE, 1003, "Body Too Long"]
        BodyTooLong { limit: usize },
        #[error("the body did not arrive within {0:?}")]
        [REQUEST_TIMEOUT, 1005, "Body Timeout"]
        BodyTimeout(Duration),
        #[error("the body arrives too slowly; send it faster or in parts")]
        [REQUEST_TIMEOUT, 1005, "Body Timeout"]
        BodyTooSlow,
        #[error("the body is incomplete, or is not valid HTTP")]
        [BAD_REQUEST, 1006, "Incomplete Body"]
        IncompleteBody,
        #[error("the query parameter {0} is not percent-encoded UTF-8")]
        [BAD_REQUEST, 1007, "Invalid Query"]
        QueryEncoding(Excerpt),
        #[error("the query parameter {0} occurs several times with different values")]
        [BAD_REQUEST, 1007, "Invalid Query"]
        ContradictoryParameter(&'static str),
        #[error("unknown query parameter {name}; {}", allowed(.known))]
        [BAD_REQUEST, 1007, "Invalid Query"]
        UnknownParameter { name: Excerpt, known: &'static [&'static str] },
        #[error("invalid {name}: {rule}")]
        [BAD_REQUEST, 1023, "Invalid Value"]
        InvalidValue { name: &'static str, rule: String },
        #[error(
            "the Content-Type must be application/json, {0}; with curl, use -H 'Content-Type: application/json'"
        )]
        [UNSUPPORTED_MEDIA_TYPE, 1021, "Wrong Content Type"]
        JsonContentType(OtherContentType),
        #[error("the body is not a valid JSON object: {0}")]
        [BAD_REQUEST, 1022, "Invalid Body"]
        InvalidJsonObject(String),
        #[error(
            "the body is longer than {limit} bytes, and a request about one withdrawal or reward needs much \
             less; {}",
            what_to_send(.known)
        )]
        [PAYLOAD_TOO_LARGE, 1003, "Body Too Long"]
        FieldsTooLong { limit: usize, known: &'static [&'static str] },
        #[error("unknown field {name}; {}", allowed(.known))]
        [BAD_REQUEST, 1022, "Invalid Body"]
        UnknownField { name: Excerpt, known: &'static [&'static str] },
        #[error("the server is overloaded: too many requests wait to be stored; try again later")]
        [TOO_MANY_REQUESTS, 31, "Unable to Accept Batches"]
        Overloaded,
        #[error("there is no such {kind}")]
        [NOT_FOUND, 1071, "Unknown Target"]
        UnknownTarget { kind: &'static str },
    }
}

fn what_to_send(known: &[&str]) -> String {
    format!("send each one in a request of its own, with only {}", known.join(", "))
}

fn allowed(known: &[&str]) -> String {
    match known {
        [] => "none is allowed here".to_owned(),
        known => format!("allowed: {}", known.join(", ")),
    }
}
