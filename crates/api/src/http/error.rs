use std::{any::Any, error::Error, fmt, sync::Arc, time::Duration};

use axum::http::StatusCode;
use grid_batch_core::BatchError;
use log::warn;

use super::{FailureCause, RequestError, ServerError};

/// Why a request is refused or fails: the error of an area of the interface, or of what it calls. Its text is the
/// `message` of the answer.
#[derive(Debug, Clone)]
pub(crate) struct ApiError(Arc<dyn Refused>);

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

    /// The error, if it is of this type.
    pub(crate) fn get<E: Refused>(&self) -> Option<&E> {
        let error: &dyn Any = &*self.0;
        error.downcast_ref()
    }

    pub(super) fn refused(&self) -> &dyn Refused {
        &*self.0
    }
}

impl Error for ApiError {}

impl<E: Refused> From<E> for ApiError {
    fn from(error: E) -> Self {
        Self(Arc::new(error))
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
impl PartialEq for ApiError {
    fn eq(&self, other: &Self) -> bool {
        let code = |error: &Self| error.0.refusal().code;
        code(self) == code(other) && self.to_string() == other.to_string()
    }
}

/// An error that a client is answered with.
pub(crate) trait Refused: Error + Any + Send + Sync {
    fn refusal(&self) -> Refusal;

    /// After which time to try again, if that was computed.
    fn wait(&self) -> Option<Duration> {
        None
    }

    /// Where to go on, such as the URL of what the request conflicts with.
    fn link(&self) -> Option<&str> {
        None
    }

    /// How to authenticate (RFC 6750), if that is what is missing.
    fn challenge(&self) -> Option<&'static str> {
        None
    }

    /// Why the store failed.
    fn failure_cause(&self) -> Option<&FailureCause> {
        None
    }
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
    pub(crate) const ACTION_REFUSED: Self = Self::new(StatusCode::CONFLICT, 1070, "Action Refused");

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
    )* } $(impl { $($methods:item)* })?) => {
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

            $($($methods)*)?
        }
    };
}

pub(crate) use refusals;
