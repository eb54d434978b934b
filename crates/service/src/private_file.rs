//! Files that must belong to one user alone.

use std::path::Path;

/// Whether other users may read or write the file. A file that cannot be looked at is not.
#[cfg(unix)]
pub(crate) fn is_open_to_others(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    std::fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
pub(crate) fn is_open_to_others(_: &Path) -> bool {
    false
}
