//! Files with secret keys and passwords.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::Path,
};

use thiserror::Error;

use crate::{StartError, private_file::mode_open_to_others};

/// Reads a file with a secret: a "key file", or what `kind` says. It is refused if other users may
/// read it.
pub(super) fn read(kind: &str, file: &Path) -> Result<String, StartError> {
    read_private(file).map_err(|error| unusable(kind, file, error))
}

/// The error must not contain the file's content.
pub(super) fn unusable(kind: &str, file: &Path, error: impl fmt::Display) -> StartError {
    StartError::Key { location: format!("{kind} {}", file.display()), message: error.to_string() }
}

/// Why a file with a secret is not used. The texts contain nothing of the file.
#[derive(Debug, Error)]
enum PrivateFileError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("other users may use it: its mode is {mode:03o}; restrict it with `chmod 600 {file}`")]
    OpenToOthers { mode: u32, file: String },
}

/// Reads a file with a secret. If other users may read or write it, it is refused.
fn read_private(file: &Path) -> Result<String, PrivateFileError> {
    let mut opened = File::open(file)?;
    // The mode of what was opened: the path may lead to another file meanwhile.
    if let Some(mode) = mode_open_to_others(&opened.metadata()?) {
        return Err(PrivateFileError::OpenToOthers { mode, file: file.display().to_string() });
    }
    let mut text = String::new();
    opened.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(all(test, unix))]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    use super::*;
    use crate::private_file::is_open_to_others;

    #[test]
    fn file_of_other_users_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, "hidden").unwrap();
        for (mode, is_read) in
            [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false)]
        {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            let read = read_private(file.path());
            assert_eq!(read.is_ok(), is_read, "{mode:o}");
            assert_eq!(is_open_to_others(file.path()), !is_read, "{mode:o}");
            let Err(error) = read else { continue };
            let error = error.to_string();
            assert!(error.contains(&format!("mode is {mode:o}")), "{error}");
            assert!(error.contains("chmod 600 /") && !error.contains("hidden"), "{error}");
        }
    }
}
