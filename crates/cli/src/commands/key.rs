//! `key`: makes and shows the keys that sign batches.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;
use grid_batch_core::Hex;
use grid_batch_protocol::SigningKey;

use crate::commands::{failure::Failure, print::print_stdout, private_file};

/// Makes and shows the keys that sign batches
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Makes a secret key, writes it to a new file, and prints its public key
    New {
        /// The new file, which only its owner can read
        file: PathBuf,
    },
    /// Prints the public key of a secret key
    Show {
        /// File with a secret key: 64 hex digits
        file: PathBuf,
    },
}

pub(crate) fn run(command: &KeyCommand) -> Result<ExitCode, Failure> {
    let key = match command {
        KeyCommand::New { file } => create(file)?,
        KeyCommand::Show { file } => read(file)?,
    };
    print_stdout(key.public_key());
    Ok(ExitCode::SUCCESS)
}

/// Reads the secret key of a file.
pub(crate) fn read(file: &Path) -> Result<SigningKey, Failure> {
    let named = |reason: String| Failure::configuration(format!("{}: {reason}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
    text.trim()
        .parse()
        .map_err(|error: grid_batch_protocol::SigningKeyError| named(error.to_string()))
}

fn create(file: &Path) -> Result<SigningKey, Failure> {
    let (key, digits) = random_key()?;
    let written = private_file::write_new(file, &format!("{digits}\n"));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::new(format!(
            "{} exists and is not overwritten; name a new file",
            file.display()
        )),
        _ => Failure::new(format!("cannot make the file {}: {error}", file.display())),
    })?;
    Ok(key)
}

/// Bytes that cannot be predicted.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| format!("the system has no random numbers: {error}"))?;
    Ok(bytes)
}

/// Nearly every number is a key.
fn random_key() -> Result<(SigningKey, String), Failure> {
    loop {
        let secret = random_bytes().map_err(Failure::new)?;
        if let Ok(key) = SigningKey::from_bytes(secret) {
            return Ok((key, Hex(&secret).to_string()));
        }
    }
}
