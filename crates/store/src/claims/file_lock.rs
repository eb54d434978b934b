use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
};

use crate::sql::{
    StoreError,
    error::ClaimError,
    private_file::create_private,
    url::{DatabaseUrl, Kind},
};

/// Excludes other processes from claiming services in the same SQLite file: a lock of the operating
/// system on a file beside it, which ends with the process.
#[derive(Debug)]
pub(crate) struct FileLock {
    _locked: File,
}

impl FileLock {
    /// Locks an SQLite database. PostgreSQL needs no such lock.
    pub(crate) fn acquire(url: &DatabaseUrl) -> Result<Option<Self>, StoreError> {
        match url.kind() {
            #[cfg(feature = "postgres")]
            Kind::Postgres(_) => Ok(None),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(file) => Self::lock_beside(file).map(Some),
        }
    }

    #[cfg(feature = "sqlite")]
    fn lock_beside(file: &Path) -> Result<Self, StoreError> {
        let failed = |file: &Path| {
            let file = file.to_owned();
            |source| StoreError::LockFile { file, source }
        };
        // All paths to the same file lead to the same lock.
        let file = file.canonicalize().map_err(failed(file))?;
        let mut path = file.clone().into_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        let lock = create_private().open(&path).map_err(failed(&path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _locked: lock }),
            Err(TryLockError::WouldBlock) => Err(ClaimError::FileInUse { file }.into()),
            Err(TryLockError::Error(error)) => Err(failed(&path)(error)),
        }
    }
}
