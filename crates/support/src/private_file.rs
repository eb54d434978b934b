use std::{
    fmt,
    fs::{File, Metadata},
    io::{self, Read},
    path::Path,
};

use thiserror::Error;

/// Why a secret key or password cannot be used. It contains no part of the secret.
#[derive(Debug, Error)]
#[error("the {location} cannot be used: {message}")]
pub struct UnusableSecret {
    /// Where the secret is kept.
    pub location: String,
    /// The reason.
    pub message: String,
}

impl UnusableSecret {
    /// For a secret in a file. `kind` says what the file is, such as "key file". The error must not contain the file's
    /// content.
    pub fn in_file(kind: &str, file: &Path, error: impl fmt::Display) -> Self {
        Self::at(format!("{kind} {}", file.display()), error)
    }

    /// For a secret at this location.
    pub fn at(location: String, error: impl fmt::Display) -> Self {
        Self { location, message: error.to_string() }
    }
}

/// Reads a file with a secret. `kind` says what the file is, such as "key file". Fails if other users may read or write
/// it.
pub fn read_secret(kind: &str, file: &Path) -> Result<String, UnusableSecret> {
    read_private(file).map_err(|error| UnusableSecret::in_file(kind, file, error))
}

/// Why a file with a secret is not used. The messages contain no part of its content.
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
    // The mode is that of the open file, because the path may lead to another file by now.
    if let Some(mode) = mode_open_to_others(&opened.metadata()?) {
        return Err(PrivateFileError::OpenToOthers { mode, file: file.display().to_string() });
    }
    let mut text = String::new();
    opened.read_to_string(&mut text)?;
    Ok(text)
}

/// Whether other users may read or write the file; `false` if its mode cannot be read.
pub fn is_open_to_others(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| mode_open_to_others(&metadata).is_some())
}

/// The mode, if it grants anything to users other than the owner.
#[cfg(unix)]
fn mode_open_to_others(metadata: &Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;

    let mode = metadata.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

#[cfg(not(unix))]
fn mode_open_to_others(_: &Metadata) -> Option<u32> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    use super::*;

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
