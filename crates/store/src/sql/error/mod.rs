mod claim;
#[cfg(feature = "withdrawals")]
mod signing;

use std::{error::Error, path::PathBuf};

use diesel::{
    ConnectionError,
    result::{DatabaseErrorKind, Error as DieselError},
};
use grid_batch_core::{BatchError, ServiceId};
use grid_batch_support::ErrorChain;
use thiserror::Error;

use super::{
    dialect::{Failure, classify, may_connect_later},
    url::UrlError,
};

pub use claim::ClaimError;
#[cfg(feature = "withdrawals")]
pub use signing::SigningError;

/// What the database or its client library reported.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// Why an operation of the store failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The text is not a database URL.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// An instance cannot claim services.
    #[error(transparent)]
    Claims(#[from] ClaimError),
    /// A signed transaction or the outcome of a nonce cannot be stored.
    #[cfg(feature = "withdrawals")]
    #[error(transparent)]
    Signing(#[from] SigningError),
    /// No connection to the database could be opened: try again later.
    #[error("the database cannot be reached: {url}")]
    Connect {
        /// The database, without its password.
        url: String,
        /// The cause.
        #[source]
        source: ConnectionError,
    },
    /// The connection broke, or no connection was free in time: try again later. A write in progress may have been
    /// committed.
    #[error("the database is unavailable")]
    Unavailable {
        /// The cause.
        #[source]
        source: Cause,
    },
    /// The file system of an SQLite file cannot keep a write-ahead log: move the file.
    #[error("the file system of {url} does not support SQLite's write-ahead log; move the file")]
    NoWriteAheadLog {
        /// The database.
        url: String,
    },
    /// Open batches were stored with, or without, what their transactions declare, but this program expects the
    /// opposite because it is for another kind of ledger.
    #[error(
        "open batches of the database were stored {} what their transactions declare: start the server \
         for the ledger that the database is for, or an empty database",
        if *expects { "without" } else { "with" }
    )]
    OtherScheduling {
        /// Whether this program stores what transactions declare.
        expects: bool,
    },
    /// The file that locks an SQLite database cannot be opened.
    #[error("the lock file {} cannot be opened", file.display())]
    LockFile {
        /// The lock file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file of an SQLite database that this process has open was replaced or removed. Writes would be lost now.
    #[error(
        "the file {} was replaced or removed while this process uses it, and nothing more is written: stop the \
         server, put the right file in its place, and start it again", file.display()
    )]
    FileReplaced {
        /// The database.
        file: PathBuf,
    },
    /// Another transaction held a lock for too long: try again.
    #[error("the database is locked")]
    Locked {
        /// The cause.
        #[source]
        source: Cause,
    },
    /// Other transactions keep rows of these services locked. Everything about other services was done: try again for
    /// these.
    #[error("rows of {} services are locked by another transaction", services.len())]
    ServicesLocked {
        /// The services.
        services: Vec<ServiceId>,
    },
    /// A connection pooler shares sessions of the server among several clients.
    #[error(
        "the database is reached through a connection pooler in transaction mode or statement mode, \
         where settings and prepared statements of connections are mixed up: set it to session mode \
         (pool_mode = session), or connect to the database directly"
    )]
    SharedSessions,
    /// The database does not accept writes.
    #[error("the database is read-only")]
    ReadOnly {
        /// The cause.
        #[source]
        source: Cause,
    },
    /// The database has no disk space left.
    #[error("the database has no space left")]
    Full {
        /// The cause.
        #[source]
        source: Cause,
    },
    /// A newer release has migrated the database: run that release or a newer one.
    #[error(
        "the database has the schema {found}; this release supports schemas up to {known}: run the \
         release that migrated the database"
    )]
    SchemaNewer {
        /// The newest version in the database.
        found: String,
        /// The newest version of this release.
        known: String,
    },
    /// An older release has written the database: start the server of this release, which migrates it.
    #[error(
        "the database has the schema {found}; this release needs {known}: start the server of this \
         release, which migrates the database, or run the command of the release that runs"
    )]
    SchemaOlder {
        /// The newest version in the database.
        found: String,
        /// The newest version of this release.
        known: String,
    },
    /// The database has the version of this release but different tables, because they were created by an earlier build
    /// with migrations that were changed since.
    #[error(
        "the tables of the database were made by an earlier build, and this release cannot upgrade them: {}. Let \
         that build finish what is open, and start this release with an empty database",
        first_of(differences)
    )]
    SchemaDiffers {
        /// What differs.
        differences: Vec<String>,
    },
    /// The pool of a program lacks settings that the store needs in each session.
    #[error(
        "connections of the pool do not have {}; build the pool with a SessionSettings as its connection_customizer",
        settings.join(", ")
    )]
    SessionSettings {
        /// The settings that are missing.
        settings: Vec<String>,
    },
    /// Batches cannot be stored on a connection of the program: begin a transaction on a connection to the store's
    /// database.
    #[error("batches cannot be stored in a transaction of the program: {problem}")]
    ProgramTransaction {
        /// What is wrong with the connection.
        problem: &'static str,
    },
    /// The database has withdrawals, but this build knows only batches. It can still read those.
    #[error(
        "the database has withdrawals, which this build does not support: use a build with the feature evm, or with \
         the feature withdrawals of grid-batch-store"
    )]
    HasWithdrawals,
    /// The database has no batches, not even tables for them: check which database is named.
    #[error("no server has used the database {url}; check its name")]
    NoTables {
        /// The database, without its password.
        url: String,
    },
    /// The file does not exist and is not created: check its name.
    #[error("there is no database {url}; check its name")]
    NoDatabase {
        /// The database.
        url: String,
    },
    /// The database holds something that this release never writes.
    #[error("the database holds invalid data: {what}")]
    Corrupt {
        /// What was found.
        what: String,
    },
    /// The database refused a statement.
    #[error("the database refused a statement")]
    Refused(#[source] DieselError),
}

/// Shows the first of several texts, and their number.
fn first_of(texts: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = texts.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
    match texts.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

impl StoreError {
    /// Whether the database cannot be used now but may be later without any change, so that trying again may help.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Connect { url, source } => may_connect_later(source, url.starts_with("sqlite:")),
            Self::Unavailable { .. } | Self::Locked { .. } => true,
            Self::Claims(
                ClaimError::NameInUse { .. }
                | ClaimError::InstancesRunning { .. }
                | ClaimError::FileInUse { .. },
            ) => true,
            _ => false,
        }
    }

    /// Whether the configuration of the database or the server must be changed first.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Claims(_) => !self.is_unavailable(),
            Self::Url(_)
            | Self::NoWriteAheadLog { .. }
            | Self::OtherScheduling { .. }
            | Self::LockFile { .. }
            | Self::ReadOnly { .. }
            | Self::SchemaNewer { .. }
            | Self::SchemaDiffers { .. }
            | Self::SessionSettings { .. }
            | Self::HasWithdrawals => true,
            _ => false,
        }
    }

    pub(crate) fn corrupt(what: impl std::fmt::Display) -> Self {
        Self::Corrupt { what: what.to_string() }
    }

    /// Whether a unique constraint was violated.
    pub(crate) fn is_duplicate(&self) -> bool {
        matches!(
            self,
            Self::Refused(DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, _))
        )
    }
}

impl From<DieselError> for StoreError {
    fn from(error: DieselError) -> Self {
        match classify(&error) {
            Some(Failure::Locked) => Self::Locked { source: Box::new(error) },
            Some(Failure::ReadOnly) => Self::ReadOnly { source: Box::new(error) },
            Some(Failure::Full) => Self::Full { source: Box::new(error) },
            Some(Failure::Unavailable) => Self::Unavailable { source: Box::new(error) },
            Some(Failure::SharedSessions) => Self::SharedSessions,
            None => Self::Refused(error),
        }
    }
}

impl From<StoreError> for BatchError {
    fn from(error: StoreError) -> Self {
        let message = ErrorChain(&error).to_string();
        match error {
            StoreError::Connect { .. }
            | StoreError::Unavailable { .. }
            | StoreError::Locked { .. } => Self::Unavailable(message),
            StoreError::ServicesLocked { services } => Self::Locked(services),
            StoreError::Full { .. } => Self::Full(message),
            _ => Self::InternalError(message),
        }
    }
}
