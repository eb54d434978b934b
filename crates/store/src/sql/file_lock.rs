use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use log::{error, warn};

use super::{
    StoreError,
    error::ClaimError,
    last_seen::Seen,
    private_file::create_private,
    url::{DatabaseUrl, Kind},
    witness,
};

/// Excludes other processes from claiming services in the same SQLite file. It is an operating system lock on a file
/// beside the database, which ends with the process. The file also stores what the process has seen in the database, so
/// that the next process notices an earlier copy.
#[derive(Debug)]
pub(crate) struct FileLock {
    locked: File,
    path: PathBuf,
    has_failed: AtomicBool,
}

impl FileLock {
    /// Locks an SQLite database. PostgreSQL needs no such lock.
    pub(crate) fn acquire(url: &DatabaseUrl) -> Result<Option<Arc<Self>>, StoreError> {
        match url.kind() {
            #[cfg(feature = "postgres")]
            Kind::Postgres(_) => Ok(None),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(file) => Self::lock_beside(file).map(Arc::new).map(Some),
        }
    }

    /// What the last instance has stored beside an SQLite database; the default if there is no such file. It is never
    /// ahead of a database that has lost nothing.
    pub(crate) fn kept(url: &DatabaseUrl) -> Seen {
        let Some(file) = url.file().and_then(|file| file.canonicalize().ok()) else {
            return Seen::default();
        };
        let path = path_beside(file);
        witness::read(&path).unwrap_or_else(|error| {
            warn!(file:% = path.display(), error:% = error;
                "the file beside the database cannot be read, so an earlier copy of the database would not be \
                 noticed. If it was restored, stop the server and run `grid-batch restored --reason TEXT`");
            Seen::default()
        })
    }

    /// Writes this for the next process. The file is not synchronized to the disk. If the machine fails, the latest
    /// numbers may be lost, and only an older copy of the database is then noticed.
    pub(crate) fn keep(&self, seen: &Seen) {
        if let Err(error) = witness::write(&self.locked, seen) {
            if !self.has_failed.swap(true, Relaxed) {
                error!(file:% = self.path.display(), error:% = error;
                    "the file beside the database cannot be written, so an earlier copy of the database may \
                     not be noticed");
            }
            return;
        }
        self.has_failed.store(false, Relaxed);
    }

    /// Empties the file, because an operator has stated that the database was restored.
    pub(crate) fn forget(&self) -> Result<(), StoreError> {
        let failed = |source| StoreError::LockFile { file: self.path.clone(), source };
        self.locked.set_len(0).map_err(failed)
    }

    #[cfg(feature = "sqlite")]
    fn lock_beside(file: &Path) -> Result<Self, StoreError> {
        let failed = |file: &Path| {
            let file = file.to_owned();
            |source| StoreError::LockFile { file, source }
        };
        // All paths to the same file lead to the same lock.
        let file = file.canonicalize().map_err(failed(file))?;
        let path = path_beside(file.clone());
        let locked = create_private().open(&path).map_err(failed(&path))?;
        match locked.try_lock() {
            Ok(()) => Ok(Self { locked, path, has_failed: AtomicBool::default() }),
            Err(TryLockError::WouldBlock) => Err(ClaimError::FileInUse { file }.into()),
            Err(TryLockError::Error(error)) => Err(failed(&path)(error)),
        }
    }
}

fn path_beside(database: PathBuf) -> PathBuf {
    let mut path = database.into_os_string();
    path.push(".lock");
    PathBuf::from(path)
}

/// The file to which the path of a database led when it was opened. If the file is replaced, the open connections
/// continue to use the removed file, and their writes are lost when the last one is closed.
#[derive(Debug, Clone)]
pub(crate) struct OpenFile {
    path: PathBuf,
    #[cfg(unix)]
    id: (u64, u64),
}

impl OpenFile {
    pub(crate) fn of(url: &DatabaseUrl) -> Option<Self> {
        let path = url.file()?.to_owned();
        Some(Self {
            #[cfg(unix)]
            id: file_id(&path).ok()?,
            path,
        })
    }

    /// Fails if the path now leads to another file or to none.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        #[cfg(unix)]
        match file_id(&self.path) {
            Ok(id) if id == self.id => {}
            Err(error) if error.kind() != io::ErrorKind::NotFound => {}
            _ => return Err(StoreError::FileReplaced { file: self.path.clone() }),
        }
        Ok(())
    }
}

/// The device and the number of a file.
#[cfg(unix)]
fn file_id(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).map(|file| (file.dev(), file.ino()))
}
