use std::time::Duration;

use axum::{
    http::{
        HeaderValue, StatusCode,
        header::{RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use grid_batch_core::AccessScope;

use crate::{
    access::AccessError,
    events::EventRequestError,
    http::{ApiError, Refusal, Refused},
    rate_limits::LimitError,
    state::ServerError,
    withdrawals::WithdrawalRequestError,
};

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
        let Refusal { status, code, title } = refused(&self).refusal();
        let message = self.to_string();
        let mut response = status.into_response();
        let (challenge, wait) = (challenge(&self), wait(&self));
        if let ApiError::Server(ServerError::ReadFailed(cause) | ServerError::WriteFailed(cause)) =
            &self
        {
            response.extensions_mut().insert(cause.clone());
        }
        response.extensions_mut().insert(ErrorDetails { code, title, message, link: link(self) });
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            let retry_after = wait.map_or_else(|| retry_after(code), seconds);
            response.headers_mut().insert(RETRY_AFTER, retry_after);
        }
        if let Some(challenge) = challenge {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        response
    }
}

/// How to authenticate (RFC 6750), if that is what is missing.
fn challenge(error: &ApiError) -> Option<&'static str> {
    let ApiError::Access(error) = error else { return None };
    match error {
        AccessError::NotAuthenticated | AccessError::NoLedgerKey => {
            Some(r#"Bearer realm="grid-batch""#)
        }
        AccessError::InvalidToken | AccessError::KeyRefused => {
            Some(r#"Bearer realm="grid-batch", error="invalid_token""#)
        }
        AccessError::MissingScope(scope) => Some(match scope {
            AccessScope::Submit => {
                r#"Bearer realm="grid-batch", error="insufficient_scope", scope="submit""#
            }
            AccessScope::Read => {
                r#"Bearer realm="grid-batch", error="insufficient_scope", scope="read""#
            }
            AccessScope::Operate => {
                r#"Bearer realm="grid-batch", error="insufficient_scope", scope="operate""#
            }
        }),
        _ => None,
    }
}

/// After which time to try again, if that was computed.
fn wait(error: &ApiError) -> Option<Duration> {
    match error {
        ApiError::Access(AccessError::TooManyWrongTokens(wait))
        | ApiError::Limit(
            LimitError::RateOfClient(wait)
            | LimitError::RateOfAddresses(wait)
            | LimitError::RateOfService { wait, .. }
            | LimitError::QueueFull { wait, .. }
            | LimitError::GasAdminFull { wait, .. },
        ) => Some(*wait),
        _ => None,
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

fn refused(error: &ApiError) -> &dyn Refused {
    match error {
        ApiError::Request(error) => error,
        ApiError::Origin(error) => error,
        ApiError::Limit(error) => error,
        ApiError::Server(error) => error,
        ApiError::Access(error) => error,
        ApiError::Batch(error) => error,
        ApiError::Forward(error) => error,
        ApiError::Scabbard(error) => error,
        ApiError::Event(error) => error,
        ApiError::Webhook(error) => error,
        ApiError::Withdrawal(error) => error,
        ApiError::Target(error) => error,
        ApiError::Format(error) => error,
        ApiError::ServiceId(error) => error,
        ApiError::ItemId(error) => error,
        ApiError::ItemIdPrefix(error) => error,
        ApiError::ShortId(error) => error,
        ApiError::BatchConflict(error) => error,
        ApiError::WithdrawalConflict(error) => error,
        ApiError::PaymentLimit(error) => error,
        ApiError::Action(error) => error,
    }
}

/// Where to go on: the URL of the withdrawal or reward that the request conflicts with, or of the oldest events.
fn link(error: ApiError) -> Option<String> {
    match error {
        ApiError::Withdrawal(
            WithdrawalRequestError::WithdrawalConflict { link, .. }
            | WithdrawalRequestError::RewardConflict { link, .. }
            | WithdrawalRequestError::AlreadyPaid { link },
        )
        | ApiError::Event(EventRequestError::EventsRemoved { link }) => Some(link),
        _ => None,
    }
}
