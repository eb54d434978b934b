use diesel::result::{DatabaseErrorKind, Error as DieselError};
use grid_batch_core::BatchError;
use thiserror::Error;

use crate::{ClaimError, SigningError, dialect, url::UrlError};

/// Why the store could not do what it was asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The URL names no database.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// An instance cannot claim services.
    #[error(transparent)]
    Claims(#[from] ClaimError),
    /// What was signed, or became of it, cannot be stored.
    #[error(transparent)]
    Signing(#[from] SigningError),
    /// The database cannot be reached, or the connection broke: try again later. What was being
    /// written may have been written.
    #[error("the database cannot be reached: {message}")]
    Unavailable {
        /// What the database's client says.
        message: String,
    },
    /// Others hold what is needed for too long: try again.
    #[error("the database is locked: {message}")]
    Locked {
        /// What the database says.
        message: String,
    },
    /// The database does not take writes.
    #[error("the database is read-only: {message}")]
    ReadOnly {
        /// What the database says.
        message: String,
    },
    /// There is no room left.
    #[error("the database has no space left: {message}")]
    Full {
        /// What the database says.
        message: String,
    },
    /// A newer release has been here: start that one, or one newer still.
    #[error(
        "the database has the schema {found}, and this release knows none newer than {known}: \
         start the release that brought it"
    )]
    SchemaNewer {
        /// The newest version in the database.
        found: String,
        /// The newest version of this release.
        known: String,
    },
    /// The schema could not be brought up to date; it is as it was before.
    #[error("the schema cannot be brought up to date: {message}")]
    Migration {
        /// What went wrong.
        message: String,
    },
    /// The database holds what this release never writes.
    #[error("the database holds {what}, which is never written")]
    Corrupt {
        /// What was found.
        what: String,
    },
    /// The database refused a statement.
    #[error("the database refused a statement: {0}")]
    Refused(#[source] DieselError),
}

impl StoreError {
    pub(crate) fn corrupt(what: impl std::fmt::Display) -> Self {
        Self::Corrupt { what: what.to_string() }
    }

    /// Another row is there already of what must be unique.
    pub(crate) fn is_duplicate(&self) -> bool {
        matches!(
            self,
            Self::Refused(DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, _))
        )
    }
}

impl From<DieselError> for StoreError {
    fn from(error: DieselError) -> Self {
        let DieselError::DatabaseError(kind, information) = &error else {
            return Self::Refused(error);
        };
        let message = information.message().trim().to_owned();
        match kind {
            DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand => {
                Self::Unavailable { message }
            }
            DatabaseErrorKind::SerializationFailure => Self::Locked { message },
            DatabaseErrorKind::ReadOnlyTransaction => Self::ReadOnly { message },
            _ => dialect::classify(message).unwrap_or(Self::Refused(error)),
        }
    }
}

impl From<StoreError> for BatchError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable { .. } | StoreError::Locked { .. } => {
                Self::Unavailable(error.to_string())
            }
            other => Self::InternalError(other.to_string()),
        }
    }
}
