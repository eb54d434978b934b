//! Files with secret keys and passwords.

use std::{fmt, path::Path};

use crate::{StartError, private_file::read_private};

/// Reads a file with a secret: a "key file", or what `kind` says. It is refused if other users may
/// read it.
pub(super) fn read(kind: &str, file: &Path) -> Result<String, StartError> {
    read_private(file).map_err(|error| unusable(kind, file, error))
}

/// The error must not contain the file's content.
pub(super) fn unusable(kind: &str, file: &Path, error: impl fmt::Display) -> StartError {
    StartError::Key { location: format!("{kind} {}", file.display()), message: error.to_string() }
}
