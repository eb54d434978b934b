use std::time::Duration;

use axum::{
    http::{
        HeaderValue, StatusCode,
        header::{RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use grid_batch_core::{AccessScope, ActionRefusal, BatchConflict, FormatError};
use grid_batch_withdrawals::{PaymentLimitError, WithdrawalConflict};

use crate::http::ApiError;

/// The fixed part of an error answer. Codes below 1000, and their titles, are those of Sawtooth's
/// REST API.
struct ErrorKind {
    status: StatusCode,
    code: u16,
    title: &'static str,
}

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
        let ErrorKind { status, code, title } = kind(&self);
        let message = self.to_string();
        let mut response = status.into_response();
        let (challenge, wait) = (challenge(&self), wait(&self));
        if let ApiError::ReadFailed(cause) | ApiError::WriteFailed(cause) = &self {
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
    match error {
        ApiError::NotAuthenticated | ApiError::NoLedgerKey => Some(r#"Bearer realm="grid-batch""#),
        ApiError::InvalidToken | ApiError::KeyRefused => {
            Some(r#"Bearer realm="grid-batch", error="invalid_token""#)
        }
        ApiError::MissingScope(scope) => Some(match scope {
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
        ApiError::TooManyWrongTokens(wait)
        | ApiError::RateOfClient(wait)
        | ApiError::RateOfAddresses(wait)
        | ApiError::RateOfService { wait, .. }
        | ApiError::QueueFull { wait, .. }
        | ApiError::GasAdminFull { wait, .. } => Some(*wait),
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

const QUEUE_FULL: u16 = 1018;
const TOO_MANY_NEW_SERVICES: u16 = 1019;
const TOO_MANY_MISSING: u16 = 1100;
const DAY_LIMIT: u16 = 1042;

fn kind(error: &ApiError) -> ErrorKind {
    let (status, code, title) = match error {
        ApiError::Format(FormatError::Undecodable(_)) => {
            (StatusCode::BAD_REQUEST, 35, "Protobuf Not Decodable")
        }
        ApiError::Format(FormatError::TooLong(_)) => {
            (StatusCode::PAYLOAD_TOO_LARGE, 1004, "List Too Long")
        }
        ApiError::Format(FormatError::Id(_)) => {
            (StatusCode::BAD_REQUEST, 60, "Invalid Resource Id")
        }
        ApiError::Format(FormatError::Empty) => {
            (StatusCode::BAD_REQUEST, 34, "No Batches Submitted")
        }
        ApiError::Format(_) => (StatusCode::BAD_REQUEST, 30, "Submitted Batches Invalid"),
        ApiError::Overloaded | ApiError::TooManyRequests | ApiError::TooManyRequestsOfAddress => {
            (StatusCode::TOO_MANY_REQUESTS, 31, "Unable to Accept Batches")
        }
        ApiError::NodeTimedOut => (StatusCode::SERVICE_UNAVAILABLE, 17, "Validator Timed Out"),
        ApiError::NodeUnavailable => {
            (StatusCode::SERVICE_UNAVAILABLE, 18, "Validator Disconnected")
        }
        ApiError::BatchesContentType(_) => (StatusCode::BAD_REQUEST, 42, "Wrong Content Type"),
        ApiError::IdsContentType(_) => (StatusCode::BAD_REQUEST, 43, "Wrong Content Type"),
        ApiError::InvalidIdList => (StatusCode::BAD_REQUEST, 46, "Bad Status Request"),
        ApiError::InvalidBatchId(_)
        | ApiError::InvalidIdPrefix(_)
        | ApiError::InvalidShortId(_) => (StatusCode::BAD_REQUEST, 60, "Invalid Resource Id"),
        ApiError::MissingIds => (StatusCode::BAD_REQUEST, 66, "Id Query Invalid or Missing"),
        ApiError::Internal => (StatusCode::INTERNAL_SERVER_ERROR, 1000, "Internal Error"),
        ApiError::NotFound => (StatusCode::NOT_FOUND, 1001, "Not Found"),
        ApiError::MethodNotAllowed(_) => {
            (StatusCode::METHOD_NOT_ALLOWED, 1002, "Method Not Allowed")
        }
        ApiError::BodyTooLong { .. } | ApiError::FieldsTooLong { .. } => {
            (StatusCode::PAYLOAD_TOO_LARGE, 1003, "Body Too Long")
        }
        ApiError::BodyTimeout(_) | ApiError::BodyTooSlow => {
            (StatusCode::REQUEST_TIMEOUT, 1005, "Body Timeout")
        }
        ApiError::IncompleteBody => (StatusCode::BAD_REQUEST, 1006, "Incomplete Body"),
        ApiError::QueryEncoding(_)
        | ApiError::ContradictoryParameter(_)
        | ApiError::UnknownParameter { .. } => (StatusCode::BAD_REQUEST, 1007, "Invalid Query"),
        ApiError::InvalidServiceId(_) | ApiError::RefusedService { .. } => {
            (StatusCode::BAD_REQUEST, 1008, "Invalid Service")
        }
        ApiError::NoScabbardService { .. } => (StatusCode::NOT_FOUND, 1050, "Unknown Service"),
        ApiError::ScabbardClient => (StatusCode::UNAUTHORIZED, 1051, "Unauthorized"),
        ApiError::ProtocolVersion(_) => (StatusCode::BAD_REQUEST, 1052, "Protocol Version"),
        ApiError::MissingScabbardIds => (StatusCode::BAD_REQUEST, 1053, "Missing Ids"),
        ApiError::SeveralServices { .. } => (StatusCode::BAD_REQUEST, 1009, "Several Services"),
        ApiError::BatchNotFound(_) => (StatusCode::NOT_FOUND, 1060, "Unknown Batch"),
        ApiError::AmbiguousId { .. } => (StatusCode::BAD_REQUEST, 1063, "Ambiguous Id"),
        ApiError::ServiceNotFound(_) => (StatusCode::NOT_FOUND, 1062, "Service Not Found"),
        ApiError::InvalidLabel(_) | ApiError::DifferentLabels => {
            (StatusCode::BAD_REQUEST, 1061, "Invalid Label")
        }
        ApiError::TooManyIds { .. } => (StatusCode::BAD_REQUEST, 1010, "Too Many Ids"),
        ApiError::BatchConflict(BatchConflict::ServiceLocked { .. }) => {
            (StatusCode::SERVICE_UNAVAILABLE, 1012, "Store Unavailable")
        }
        ApiError::NotAuthenticated => (StatusCode::UNAUTHORIZED, 1090, "Not Authenticated"),
        ApiError::InvalidToken => (StatusCode::UNAUTHORIZED, 1091, "Invalid Token"),
        ApiError::NoLedgerKey => (StatusCode::UNAUTHORIZED, 1097, "Key Missing"),
        ApiError::KeyRefused => (StatusCode::UNAUTHORIZED, 1098, "Key Refused"),
        ApiError::KeyNotChecked => (StatusCode::SERVICE_UNAVAILABLE, 1099, "Key Not Checked"),
        ApiError::TooManyWrongTokens(_) => {
            (StatusCode::TOO_MANY_REQUESTS, 1092, "Too Many Invalid Tokens")
        }
        ApiError::MissingScope(_) => (StatusCode::FORBIDDEN, 1093, "Scope Missing"),
        ApiError::ServiceOfOthers(_) | ApiError::OnlyForAllServices => {
            (StatusCode::FORBIDDEN, 1094, "Service Not Allowed")
        }
        ApiError::RateOfClient(_) => {
            (StatusCode::TOO_MANY_REQUESTS, 1095, "Rate of Client Exceeded")
        }
        ApiError::RateOfService { .. } => {
            (StatusCode::TOO_MANY_REQUESTS, 1096, "Rate of Service Exceeded")
        }
        ApiError::RateOfAddresses(_) => {
            (StatusCode::TOO_MANY_REQUESTS, 1101, "Rate of Addresses Exceeded")
        }
        ApiError::QueueFull { .. }
        | ApiError::GasAdminFull { .. }
        | ApiError::BatchConflict(
            BatchConflict::QueueFull { .. } | BatchConflict::QueueOfClientFull { .. },
        ) => (StatusCode::TOO_MANY_REQUESTS, QUEUE_FULL, "Queue Full"),
        ApiError::BatchConflict(
            BatchConflict::TooManyMissing { .. } | BatchConflict::TooManyIncomplete { .. },
        ) => (StatusCode::TOO_MANY_REQUESTS, TOO_MANY_MISSING, "Too Many Missing Transactions"),
        ApiError::BatchConflict(
            BatchConflict::TooManyServicesOfSigner { .. }
            | BatchConflict::TooManyNewServices { .. },
        ) => (StatusCode::TOO_MANY_REQUESTS, TOO_MANY_NEW_SERVICES, "Too Many New Services"),
        ApiError::BatchConflict(BatchConflict::Transaction(_)) => {
            (StatusCode::CONFLICT, 1014, "Transaction Conflict")
        }
        ApiError::BatchConflict(BatchConflict::AppliedBefore { .. }) => {
            (StatusCode::CONFLICT, 1032, "Applied Before")
        }
        ApiError::NotProvedNew(_) => (StatusCode::CONFLICT, 1033, "Not Proved New"),
        ApiError::BatchConflict(_) => (StatusCode::CONFLICT, 1011, "Batch Conflict"),
        ApiError::BatchesNotStored
        | ApiError::NotScheduled(_)
        | ApiError::WriteFailed(_)
        | ApiError::DatabaseDown => (StatusCode::SERVICE_UNAVAILABLE, 1012, "Store Unavailable"),
        ApiError::ReadFailed(_) => (StatusCode::SERVICE_UNAVAILABLE, 1013, "Store Unavailable"),
        ApiError::ServiceNotAllowed(_) => (StatusCode::FORBIDDEN, 1016, "Service Not Allowed"),
        ApiError::SignerNotAllowed(_) | ApiError::NoSigner => {
            (StatusCode::FORBIDDEN, 1017, "Signer Not Allowed")
        }
        ApiError::OtherHost(_) => (StatusCode::MISDIRECTED_REQUEST, 1030, "Unknown Host"),
        ApiError::OtherOrigin(_) | ApiError::OtherSite(_) => {
            (StatusCode::FORBIDDEN, 1031, "Cross-Site Request")
        }
        ApiError::UnknownService { .. } => (StatusCode::NOT_FOUND, 1015, "Unknown Service"),
        ApiError::BatchesNotServed | ApiError::WithdrawalsNotServed => {
            (StatusCode::NOT_FOUND, 1020, "Not Served Here")
        }
        ApiError::InvalidEventCursor(_) => (StatusCode::BAD_REQUEST, 1080, "Invalid Cursor"),
        ApiError::EventsRemoved { .. } => (StatusCode::GONE, 1081, "Events Removed"),
        ApiError::TooManyEventListeners => {
            (StatusCode::SERVICE_UNAVAILABLE, 1082, "Too Many Listeners")
        }
        ApiError::WebhookNotFound => (StatusCode::NOT_FOUND, 1084, "Webhook Not Found"),
        ApiError::TooManyWebhooks => (StatusCode::CONFLICT, 1085, "Too Many Webhooks"),
        ApiError::JsonContentType(_) => {
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, 1021, "Wrong Content Type")
        }
        ApiError::InvalidJsonObject(_) | ApiError::UnknownField { .. } => {
            (StatusCode::BAD_REQUEST, 1022, "Invalid Body")
        }
        ApiError::InvalidValue { .. } => (StatusCode::BAD_REQUEST, 1023, "Invalid Value"),
        ApiError::InvalidIdempotencyKey | ApiError::DifferentIdempotencyKeys => {
            (StatusCode::BAD_REQUEST, 1024, "Invalid Idempotency Key")
        }
        ApiError::WithdrawalNotFound(_) | ApiError::RewardNotFound(_) => {
            (StatusCode::NOT_FOUND, 1025, "Unknown Id")
        }
        ApiError::WithdrawalConflict { .. } | ApiError::RewardConflict { .. } => {
            (StatusCode::CONFLICT, 1026, "Idempotency Conflict")
        }
        ApiError::NotAccepted(WithdrawalConflict::QueueFull { .. }) => {
            (StatusCode::TOO_MANY_REQUESTS, QUEUE_FULL, "Queue Full")
        }
        ApiError::NotAccepted(WithdrawalConflict::ServiceLocked { .. }) => {
            (StatusCode::SERVICE_UNAVAILABLE, 1012, "Store Unavailable")
        }
        ApiError::NotAccepted(WithdrawalConflict::OtherTerms { .. }) => {
            (StatusCode::CONFLICT, 1026, "Idempotency Conflict")
        }
        ApiError::AlreadyPaid { .. } => (StatusCode::CONFLICT, 1027, "Already Paid"),
        ApiError::BeneficiaryNotAllowed { .. } => {
            (StatusCode::FORBIDDEN, 1040, "Beneficiary Not Allowed")
        }
        ApiError::PaymentLimit(error)
        | ApiError::NotAccepted(WithdrawalConflict::PaymentLimit(error)) => match error {
            PaymentLimitError::Day { .. } => {
                (StatusCode::TOO_MANY_REQUESTS, DAY_LIMIT, "Daily Limit")
            }
            _ => (StatusCode::FORBIDDEN, 1041, "Amount Not Allowed"),
        },
        ApiError::ActionRefused(ActionRefusal::Locked) => {
            (StatusCode::SERVICE_UNAVAILABLE, 1012, "Store Unavailable")
        }
        ApiError::ActionRefused(_) => (StatusCode::CONFLICT, 1070, "Action Refused"),
        ApiError::UnknownTarget { .. } => (StatusCode::NOT_FOUND, 1071, "Unknown Target"),
        ApiError::NotFailed { .. } | ApiError::AlreadyEnded { .. } => {
            (StatusCode::CONFLICT, 1028, "Wrong State")
        }
    };
    ErrorKind { status, code, title }
}

/// Where to go on: the URL of the withdrawal or reward that the request conflicts with, or of the oldest events.
fn link(error: ApiError) -> Option<String> {
    match error {
        ApiError::WithdrawalConflict { link, .. }
        | ApiError::RewardConflict { link, .. }
        | ApiError::AlreadyPaid { link }
        | ApiError::EventsRemoved { link } => Some(link),
        _ => None,
    }
}
