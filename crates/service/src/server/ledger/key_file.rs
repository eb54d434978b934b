//! Files with secret keys.

use std::{fmt, fs, path::Path};

use log::warn;

use crate::StartError;

/// Reads a key file, and warns if other users can read it too.
pub(super) fn read(file: &Path) -> Result<String, StartError> {
    warn_if_readable_by_others(file);
    fs::read_to_string(file).map_err(|error| unusable(file, error))
}

/// The error must not contain the file's content.
pub(super) fn unusable(file: &Path, error: impl fmt::Display) -> StartError {
    StartError::Key { location: format!("key file {}", file.display()), message: error.to_string() }
}

#[cfg(unix)]
fn warn_if_readable_by_others(file: &Path) {
    use std::os::unix::fs::PermissionsExt;

    if let Ok(metadata) = fs::metadata(file)
        && metadata.permissions().mode() & 0o077 != 0
    {
        warn!(file:% = file.display(); "other users can read the key file; restrict it with chmod 600");
    }
}

#[cfg(not(unix))]
fn warn_if_readable_by_others(_: &Path) {}
