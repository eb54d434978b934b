//! Files with secret keys.

use std::{fmt, fs, path::Path};

use log::warn;

use crate::{StartError, private_file::is_open_to_others};

/// Reads a key file, and warns if other users can read it too.
pub(super) fn read(file: &Path) -> Result<String, StartError> {
    warn_if_readable_by_others(file);
    fs::read_to_string(file).map_err(|error| unusable(file, error))
}

/// The error must not contain the file's content.
pub(super) fn unusable(file: &Path, error: impl fmt::Display) -> StartError {
    StartError::Key { location: format!("key file {}", file.display()), message: error.to_string() }
}

fn warn_if_readable_by_others(file: &Path) {
    if is_open_to_others(file) {
        warn!(file:% = file.display(); "other users can read the key file; restrict it with chmod 600");
    }
}
