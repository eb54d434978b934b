use std::{
    error::Error,
    path::{Path, PathBuf},
};

use grid_batch_client::ClientError;
use grid_batch_core::BatchError;
use grid_batch_ledger_sim::StartError as LedgerError;
use grid_batch_service::{ConfigError, StartError};
use grid_batch_store::StoreError;

/// Why a demonstration failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// The options contradict each other.
    #[error("{0}")]
    Options(String),
    /// A file or directory cannot be used.
    #[error("cannot use {}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The directory was kept by a demonstration with other options.
    #[error(
        "the kept demonstration has another {option}: {kept}; continue with that, or keep this one \
         in another directory"
    )]
    OtherOptions {
        /// The option that differs.
        option: &'static str,
        /// Its value in the kept demonstration.
        kept: String,
    },
    /// The database was used before, and not by this demonstration. Its batches would be sent to the
    /// simulated ledger.
    #[error(
        "the database {use_before}; use an empty database, or --keep with the directory of the \
         demonstration that it belongs to"
    )]
    UsedDatabase {
        /// Its earlier use.
        use_before: String,
    },
    /// The demonstration was stopped before its end by [`DemoOptions::stop`](crate::DemoOptions::stop).
    #[error("stopped before all batches had ended")]
    Stopped,
    /// The server refuses a request or does not answer it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The simulated ledger cannot start.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The chain cannot be used.
    #[cfg(feature = "evm")]
    #[error(transparent)]
    Chain(#[from] grid_batch_local_chain::ChainError),
    /// The server cannot start or stop.
    #[error(transparent)]
    Server(#[from] StartError),
    /// The server's configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored batches cannot be read.
    #[error(transparent)]
    Read(#[from] BatchError),
    /// Any other error.
    #[error(transparent)]
    Internal(Box<dyn Error + Send + Sync>),
}

impl DemoError {
    pub(crate) fn internal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Internal(error.into())
    }

    pub(crate) fn file(path: &Path, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::File { path: path.to_owned(), source: source.into() }
    }
}
