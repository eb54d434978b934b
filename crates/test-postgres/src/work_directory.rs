use std::{
    env,
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use crate::account::UnixAccount;

/// The directory of an account's templates and running servers. Other accounts cannot enter it,
/// because a server accepts every connection to its socket.
#[derive(Debug, Clone)]
pub(crate) struct WorkDirectory {
    path: PathBuf,
    account: UnixAccount,
}

impl WorkDirectory {
    const PRIVATE: u32 = 0o700;

    /// The account's directory in the directory for temporary files.
    pub(crate) fn temporary(account: UnixAccount) -> Self {
        let name = format!("grid-batch-postgres-{}", account.uid());
        Self::open(&env::temp_dir().join(name), account)
    }

    pub(crate) fn open(path: &Path, account: UnixAccount) -> Self {
        Self::prepare(path, account)
            .unwrap_or_else(|error| panic!("cannot use the directory {}: {error}", path.display()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn account(&self) -> UnixAccount {
        self.account
    }

    fn prepare(path: &Path, account: UnixAccount) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        match DirBuilder::new().mode(Self::PRIVATE).create(&path) {
            Ok(()) => account.take_ownership(&path)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        // Another user may have created it to have this process run the files in it.
        let found = fs::symlink_metadata(&path)?;
        if !found.is_dir() || found.uid() != account.uid() {
            return Err(io::Error::other("it is not a directory, or another user owns it"));
        }
        fs::set_permissions(&path, Permissions::from_mode(Self::PRIVATE))?;
        Ok(Self { path, account })
    }
}
