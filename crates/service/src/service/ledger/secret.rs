//! Secret keys, where they are kept.

use std::{fmt, fs, path::Path};

use log::warn;

use crate::StartError;

/// The text of a file that is nobody else's business.
pub(super) fn of_file(file: &Path) -> Result<String, StartError> {
    warn_of_readers(file);
    fs::read_to_string(file).map_err(|error| unusable(file, error))
}

/// The error must not show what stands in the file.
pub(super) fn unusable(file: &Path, error: impl fmt::Display) -> StartError {
    StartError::Key { place: format!("key file {}", file.display()), message: error.to_string() }
}

#[cfg(unix)]
fn warn_of_readers(file: &Path) {
    use std::os::unix::fs::PermissionsExt;

    if let Ok(about) = fs::metadata(file)
        && about.permissions().mode() & 0o077 != 0
    {
        warn!(file:% = file.display(); "others than its owner may read the key");
    }
}

#[cfg(not(unix))]
fn warn_of_readers(_: &Path) {}
