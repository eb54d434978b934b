use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use grid_batch_core::ServiceId;
use grid_batch_ledger_sim::StartError as LedgerError;
use grid_batch_store::StoreError;
use thiserror::Error;

use crate::{ConfigError, StartError};

/// Why a demonstration could not be shown.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DemoError {
    /// The options do not go together.
    #[error("{0}")]
    Options(String),
    /// Something of the directory cannot be used.
    #[error("cannot use {}: {message}", path.display())]
    Place {
        /// What.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// What was kept is of another demonstration.
    #[error("what was kept there has other {what}: {left}; go on with that, or keep it elsewhere")]
    OtherPlan {
        /// What differs.
        what: &'static str,
        /// What was kept.
        left: String,
    },
    /// The database holds open batches that this demonstration's ledger would never take.
    #[error(
        "the database holds open batches of {service_id}, which is no service of this \
         demonstration; give it an empty database, or --keep the directory that it belongs to"
    )]
    OthersBatches {
        /// One of their services.
        service_id: ServiceId,
    },
    /// The service does not take what it should.
    #[error("the service answered with HTTP status {status}: {text}")]
    Refused {
        /// The status.
        status: u16,
        /// Its words.
        text: String,
    },
    /// The simulated ledger does not start.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// There is no chain.
    #[cfg(feature = "evm")]
    #[error(transparent)]
    Chain(#[from] grid_batch_test_chain::ChainError),
    /// The service does not start or stop.
    #[error(transparent)]
    Service(#[from] StartError),
    /// The settings are wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something that cannot be.
    #[error("{0}")]
    Internal(String),
}

impl DemoError {
    pub(super) fn internal(error: impl Display) -> Self {
        Self::Internal(error.to_string())
    }

    pub(super) fn place(path: &Path, error: &dyn Display) -> Self {
        Self::Place { path: path.to_owned(), message: error.to_string() }
    }
}
