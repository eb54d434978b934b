use std::time::Duration;

use axum::{
    http::{
        HeaderValue, StatusCode,
        header::{RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};

use super::{ApiError, Refusal};

/// What an error response tells, in a response extension: the [`ErrorDialect`](crate::http::ErrorDialect) of the request
/// writes the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorDetails {
    pub(crate) code: u16,
    pub(crate) title: &'static str,
    pub(crate) message: String,
    /// What the request conflicts with.
    pub(crate) link: Option<String>,
}

/// A response without a body, which [`write_errors`](crate::http::write_errors) adds.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let error = self.refused();
        let Refusal { status, code, title } = error.refusal();
        let (message, link) = (self.to_string(), error.link().map(str::to_owned));
        let mut response = status.into_response();
        if let Some(cause) = error.failure_cause() {
            response.extensions_mut().insert(cause.clone());
        }
        response.extensions_mut().insert(ErrorDetails { code, title, message, link });
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            let retry_after = error.wait().map_or_else(|| retry_after(code), seconds);
            response.headers_mut().insert(RETRY_AFTER, retry_after);
        }
        if let Some(challenge) = error.challenge() {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        response
    }
}

/// Whole seconds, rounded up, so that no client tries too early.
fn seconds(wait: Duration) -> HeaderValue {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    HeaderValue::from(seconds.max(1))
}

/// After how many seconds to try again. A service at its limit can have another open batch as soon as one
/// has ended, and a new service stays new at least until then.
fn retry_after(code: u16) -> HeaderValue {
    HeaderValue::from_static(match code {
        // The step in which amounts stop counting.
        DAY_LIMIT => "600",
        QUEUE_FULL | TOO_MANY_NEW_SERVICES | TOO_MANY_MISSING => "10",
        _ => "1",
    })
}

const QUEUE_FULL: u16 = Refusal::QUEUE_FULL.code;
const TOO_MANY_NEW_SERVICES: u16 = 1019;
const TOO_MANY_MISSING: u16 = 1100;
const DAY_LIMIT: u16 = 1042;
