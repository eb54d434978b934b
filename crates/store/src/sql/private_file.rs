//! Files that only the user of the process may read and write.

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
};

/// The options to create a file that only its user may access, whatever the umask.
pub(crate) fn create_private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates an empty file if there is none, which SQLite treats as an empty database. SQLite itself would create it with
/// the rights that the umask allows. The files that SQLite creates beside it get the rights of the database.
#[cfg(feature = "sqlite")]
pub(crate) fn prepare_database_file(path: &Path) -> io::Result<()> {
    if path.exists() { Ok(()) } else { create_private().open(path).map(|_: File| ()) }
}
