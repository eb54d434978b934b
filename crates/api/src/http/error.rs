use axum::http::StatusCode;
use grid_batch_core::{
    ActionRefusal, BatchConflict, BatchError, BatchLabelError, FormatError, ItemIdError,
    ItemIdPrefixError, ServiceIdError,
};
use grid_batch_withdrawals::{PaymentLimitError, ShortIdError, WithdrawalConflict};
use log::warn;
use thiserror::Error;

use super::RequestError;
use crate::{
    access::AccessError,
    batches::BatchRequestError,
    events::EventRequestError,
    guard::OriginError,
    operators::TargetError,
    pass_through::ForwardError,
    rate_limits::LimitError,
    scabbard::ScabbardRequestError,
    state::{FailureCause, ServerError},
    webhooks::WebhookRequestError,
    withdrawals::WithdrawalRequestError,
};

/// Why a request is refused or fails: the error of an area of the interface, or of what it calls. Its text is the
/// `message` of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(transparent)]
pub(crate) enum ApiError {
    Request(#[from] RequestError),
    Origin(#[from] OriginError),
    Limit(#[from] LimitError),
    Server(#[from] ServerError),
    Access(#[from] AccessError),
    Batch(#[from] BatchRequestError),
    Forward(#[from] ForwardError),
    Scabbard(#[from] ScabbardRequestError),
    Event(#[from] EventRequestError),
    Webhook(#[from] WebhookRequestError),
    Withdrawal(#[from] WithdrawalRequestError),
    Target(#[from] TargetError),
    Format(#[from] FormatError),
    ServiceId(#[from] ServiceIdError),
    ItemId(#[from] ItemIdError),
    ItemIdPrefix(#[from] ItemIdPrefixError),
    ShortId(#[from] ShortIdError),
    BatchConflict(#[from] BatchConflict),
    WithdrawalConflict(#[from] WithdrawalConflict),
    PaymentLimit(#[from] PaymentLimitError),
    Action(#[from] ActionRefusal),
}

impl ApiError {
    /// The value of a parameter or field breaks a rule, which names what is allowed.
    pub(crate) fn invalid_value(name: &'static str, rule: impl Into<String>) -> Self {
        RequestError::InvalidValue { name, rule: rule.into() }.into()
    }

    /// The answer if the database stops answering while it is read.
    pub(crate) fn read_interrupted() -> Self {
        ServerError::ReadFailed(FailureCause::default()).into()
    }

    /// The answer if the database stops answering while it is written.
    pub(crate) fn write_interrupted() -> Self {
        ServerError::WriteFailed(FailureCause::default()).into()
    }

    /// Logs why reading failed. The client does not see the cause.
    pub(crate) fn read_failed(error: BatchError) -> Self {
        warn!(error:%; "reading from the store failed");
        ServerError::ReadFailed(FailureCause::of(&error)).into()
    }

    /// Logs why writing failed. The client does not see the cause.
    pub(crate) fn write_failed(error: BatchError) -> Self {
        warn!(error:%; "writing to the store failed");
        ServerError::WriteFailed(FailureCause::of(&error)).into()
    }
}

impl From<BatchLabelError> for ApiError {
    fn from(error: BatchLabelError) -> Self {
        BatchRequestError::InvalidLabel(error).into()
    }
}

/// An error that a client is answered with.
pub(crate) trait Refused {
    fn refusal(&self) -> Refusal;
}

/// The fixed part of an error answer. Codes below 1000, and their titles, are those of Sawtooth's REST API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) code: u16,
    pub(crate) title: &'static str,
}

impl Refusal {
    pub(crate) const INVALID_ID: Self =
        Self::new(StatusCode::BAD_REQUEST, 60, "Invalid Resource Id");
    pub(crate) const INVALID_SERVICE: Self =
        Self::new(StatusCode::BAD_REQUEST, 1008, "Invalid Service");
    pub(crate) const STORE_UNAVAILABLE: Self =
        Self::new(StatusCode::SERVICE_UNAVAILABLE, 1012, "Store Unavailable");
    pub(crate) const QUEUE_FULL: Self =
        Self::new(StatusCode::TOO_MANY_REQUESTS, 1018, "Queue Full");

    pub(crate) const fn new(status: StatusCode, code: u16, title: &'static str) -> Self {
        Self { status, code, title }
    }
}

/// Declares the errors of an area, each with the status, code and title of its answer.
macro_rules! refusals {
    ($(#[$about:meta])* pub(crate) enum $name:ident { $(
        $(#[$attribute:meta])*
        [$status:ident, $code:literal, $title:literal]
        $variant:ident $(($($tuple:tt)*))? $({$($fields:tt)*})?,
    )* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
        pub(crate) enum $name {
            $($(#[$attribute])* $variant $(($($tuple)*))? $({$($fields)*})?),*
        }

        impl $crate::http::Refused for $name {
            fn refusal(&self) -> $crate::http::Refusal {
                match self {
                    $(Self::$variant { .. } => $crate::http::Refusal::new(
                        axum::http::StatusCode::$status, $code, $title,
                    )),*
                }
            }
        }
    };
}

pub(crate) use refusals;
