use std::{error::Error, io, time::Duration};

use grid_batch_api::TlsError;
use grid_batch_core::InternalError;
use grid_batch_http::HttpError;
use grid_batch_ledger_check::LedgerMismatchError;
use grid_batch_store::StoreError;
use grid_batch_support::{StopError, UnusableSecret};

use crate::config::KIND_RULE;

/// Why the server cannot start, or did not stop cleanly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A setting without a default is not set.
    #[error("{name} is not set; {rule}")]
    Missing {
        /// The setting.
        name: &'static str,
        /// What it must be.
        rule: &'static str,
    },
    /// A secret key cannot be used.
    #[error(transparent)]
    Key(#[from] UnusableSecret),
    /// The ledger's adapter cannot use a setting's value.
    #[error("{name}: {message}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What is wrong with the value.
        message: String,
    },
    /// The adapter of a registered ledger cannot be made.
    #[error("the adapter of the ledger cannot be used")]
    Adapter(#[source] Box<dyn Error + Send + Sync>),
    /// The address of the HTTP interface cannot be used.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The certificate of the HTTP interface cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The database cannot be used.
    #[error("cannot use the database {database}")]
    Store {
        /// The database's URL without its password.
        database: String,
        /// The store's error.
        source: StoreError,
    },
    /// The database is bound to another ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerMismatchError),
    /// The HTTP client for the ledger cannot be created.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The limit of file descriptors is too low for the settings.
    #[error(
        "the limit of file descriptors is {limit}, and the settings need at least {needed}; raise it with \
         `ulimit -n` or LimitNOFILE, or lower submit.concurrency, ledger.event_sockets or store.connections"
    )]
    FileDescriptors {
        /// The limit of this process.
        limit: usize,
        /// The least that the settings need.
        needed: usize,
    },
    /// The server did not stop in time.
    #[error(
        "the server did not stop cleanly: {parts} did not end within {limit:?}. Nothing that was accepted is \
         lost; batches that were being sent are in doubt, and their claims expire"
    )]
    StopLimit {
        /// The time limit.
        limit: Duration,
        /// The parts that did not end, separated by commas.
        parts: String,
    },
    /// A part cannot be built.
    #[error(transparent)]
    Part(Box<dyn Error + Send + Sync>),
    /// A part did not start or stop.
    #[error(transparent)]
    Internal(#[from] InternalError),
}

impl StartError {
    /// Something is not available now, and may be later although nothing is changed: try again.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Store { source, .. } => source.is_unavailable(),
            Self::Listen { source, .. } => source.kind() == io::ErrorKind::AddrInUse,
            _ => false,
        }
    }

    /// The settings, a key, the database or the nodes must be changed first.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Missing { .. }
            | Self::Key(_)
            | Self::Setting { .. }
            | Self::Adapter(_)
            | Self::FileDescriptors { .. }
            | Self::Tls(_)
            | Self::Ledger(_) => true,
            Self::Listen { .. } => !self.is_unavailable(),
            Self::Store { source, .. } => source.is_configuration(),
            Self::Http(_) | Self::StopLimit { .. } | Self::Part(_) | Self::Internal(_) => false,
        }
    }

    /// The error of parts that did not stop.
    pub(super) fn of_stop(error: StopError) -> Self {
        match error {
            StopError::Limit { limit, parts } => Self::StopLimit { limit, parts },
            StopError::Part(error) => Self::Internal(error),
            error => Self::part(error),
        }
    }

    pub(super) fn no_ledger_kind() -> Self {
        Self::Missing { name: "ledger.kind", rule: &KIND_RULE }
    }

    pub(super) fn part(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Part(error.into())
    }
}
