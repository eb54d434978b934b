use std::{
    env,
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use crate::account::Account;

/// The directory that holds an account's templates and running servers, closed to all others:
/// a server lets in whoever reaches its socket.
#[derive(Debug, Clone)]
pub(crate) struct Workplace {
    path: PathBuf,
    account: Account,
}

impl Workplace {
    const PRIVATE: u32 = 0o700;

    /// The account's place among the temporary files.
    pub(crate) fn temporary(account: Account) -> Self {
        let name = format!("grid-batch-postgres-{}", account.uid());
        Self::open(&env::temp_dir().join(name), account)
    }

    pub(crate) fn open(path: &Path, account: Account) -> Self {
        Self::prepare(path, account)
            .unwrap_or_else(|error| panic!("cannot work in {}: {error}", path.display()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn account(&self) -> Account {
        self.account
    }

    fn prepare(path: &Path, account: Account) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        match DirBuilder::new().mode(Self::PRIVATE).create(&path) {
            Ok(()) => account.take_over(&path)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        // Somebody else may have put it there, to have us run what is in it.
        let found = fs::symlink_metadata(&path)?;
        if !found.is_dir() || found.uid() != account.uid() {
            return Err(io::Error::other("it belongs to somebody else"));
        }
        fs::set_permissions(&path, Permissions::from_mode(Self::PRIVATE))?;
        Ok(Self { path, account })
    }
}
