use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Writes a new file that only its owner can read.
pub(crate) fn write_new(file: &Path, text: &str) -> io::Result<()> {
    let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    opened.write_all(text.as_bytes())?;
    opened.sync_all()
}
