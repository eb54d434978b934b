use std::fmt;

use grid_batch_core::BatchError;
use log::error;

use crate::http::refusals;

refusals! {
    /// The server cannot carry a request out now. The client does not see the cause: the log has it.
    pub(crate) enum ServerError {
        #[error("the database does not answer now; nothing was read or stored; try again later")]
        [SERVICE_UNAVAILABLE, 1012, "Store Unavailable"]
        DatabaseDown,
        #[error("internal error; the log of the server has the details")]
        [INTERNAL_SERVER_ERROR, 1000, "Internal Error"]
        Internal,
        #[error("the database cannot be read now; try again later")]
        [SERVICE_UNAVAILABLE, 1013, "Store Unavailable"]
        ReadFailed(FailureCause),
        #[error("the request may not have been carried out; check the result, and try again")]
        [SERVICE_UNAVAILABLE, 1012, "Store Unavailable"]
        WriteFailed(FailureCause),
    }
    impl {
        fn failure_cause(&self) -> Option<&FailureCause> {
            match self {
                Self::ReadFailed(cause) | Self::WriteFailed(cause) => Some(cause),
                _ => None,
            }
        }
    }
}

/// Why the store failed. It is in no answer over HTTP: clients do not see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FailureCause(pub(crate) Option<String>);

impl FailureCause {
    pub(crate) fn of(error: &BatchError) -> Self {
        Self(Some(error.to_string()))
    }
}

/// Logs that there are no random numbers. The client does not see it.
pub(crate) fn random_failed(error: impl fmt::Display) -> ServerError {
    error!(error:%; "the operating system provides no random numbers");
    ServerError::Internal
}
