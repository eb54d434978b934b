use std::fmt;

use grid_batch_http::HttpError;
use grid_batch_support::UnusableSecret;
use thiserror::Error;

/// Why the settings of a chain cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EvmSetupError {
    /// A setting without a default is not set.
    #[error("{name} is not set; {rule}")]
    Missing {
        /// The setting.
        name: &'static str,
        /// What it must be.
        rule: &'static str,
    },
    /// The value of a setting cannot be used.
    #[error("{name}: {message}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What is wrong with the value.
        message: String,
    },
    /// A secret key or password cannot be used.
    #[error(transparent)]
    Key(#[from] UnusableSecret),
    /// The HTTP client of a remote signer cannot be created.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// A pool has a gas admin that is not configured.
    #[error("no gas admin is named {0}")]
    UnknownGasAdmin(String),
}

/// Converts the result of parsing a setting.
pub(super) fn parsed<T, E: fmt::Display>(
    name: &'static str,
    value: Result<T, E>,
) -> Result<T, EvmSetupError> {
    value.map_err(|error| invalid(name, error))
}

pub(super) fn invalid(name: &'static str, message: impl fmt::Display) -> EvmSetupError {
    EvmSetupError::Setting { name, message: message.to_string() }
}
