use std::{io, net::SocketAddr};

use grid_batch_core::InternalError;
use grid_batch_http::HttpError;
use grid_batch_store::StoreError;
use thiserror::Error;

/// Why the service does not start, or did not end as it should.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// A setting is needed that has no default.
    #[error("{name} is not set; {rule}")]
    Missing {
        /// Its name.
        name: &'static str,
        /// What it should be.
        rule: &'static str,
    },
    /// A key that the service is known by cannot be used.
    #[error("the {place} cannot be used: {message}")]
    Key {
        /// Where it is kept.
        place: String,
        /// Why.
        message: String,
    },
    /// A setting has a value that the ledger's adapter does not understand.
    #[error("{name}: {message}")]
    Setting {
        /// Its name.
        name: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// The ledger's adapter was left out of this build.
    #[error("this build has no adapter for {kind}; build it with --features {kind}")]
    NotBuilt {
        /// Which kind of ledger.
        kind: &'static str,
    },
    /// Nobody can hand batches in.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The database cannot be used.
    #[error("the database {database}: {source}")]
    Store {
        /// Which, without its password.
        database: String,
        /// What is wrong with it.
        source: StoreError,
    },
    /// No requests to the ledger can be made.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// A part could not be put together or started.
    #[error("{0}")]
    Part(String),
    /// A part did not end as it should.
    #[error(transparent)]
    End(#[from] InternalError),
}

impl StartError {
    pub(super) fn part(error: impl std::fmt::Display) -> Self {
        Self::Part(error.to_string())
    }
}
