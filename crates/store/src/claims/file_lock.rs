use std::{
    fs::{File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
};

use crate::{ClaimError, DatabaseUrl, StoreError, url::Kind};

/// Keeps other processes from claiming services in the same SQLite file: a lock of the operating
/// system on a file beside it, which ends with the process, however that ends.
#[derive(Debug)]
pub(super) struct FileLock {
    _locked: File,
}

impl FileLock {
    /// The lock of the database; none, where it is a server's.
    pub(super) fn of(url: &DatabaseUrl) -> Result<Option<Self>, StoreError> {
        match url.kind() {
            #[cfg(feature = "postgres")]
            Kind::Postgres(_) => Ok(None),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(file) => Self::beside(file).map(Some),
        }
    }

    #[cfg(feature = "sqlite")]
    fn beside(file: &Path) -> Result<Self, StoreError> {
        let unavailable = |file: &Path, error: &dyn std::fmt::Display| StoreError::Unavailable {
            message: format!("{}: {error}", file.display()),
        };
        // One file has one lock, by whichever path it was opened.
        let file = file.canonicalize().map_err(|error| unavailable(file, &error))?;
        let mut path = file.clone().into_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let lock = opened.map_err(|error| unavailable(&path, &error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _locked: lock }),
            Err(TryLockError::WouldBlock) => Err(ClaimError::FileInUse { file }.into()),
            Err(TryLockError::Error(error)) => Err(unavailable(&path, &error)),
        }
    }
}
