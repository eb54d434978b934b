//! Files that must belong to one user alone.

use std::{fs::Metadata, path::Path};

/// Whether other users may read or write the file. A file that cannot be looked at is not.
pub(crate) fn is_open_to_others(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| mode_open_to_others(&metadata).is_some())
}

/// The mode, if it gives anything to users other than the owner.
#[cfg(unix)]
pub(crate) fn mode_open_to_others(metadata: &Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;

    let mode = metadata.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

#[cfg(not(unix))]
pub(crate) fn mode_open_to_others(_: &Metadata) -> Option<u32> {
    None
}
