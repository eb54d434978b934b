//! `key`: makes and shows the keys that sign batches.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Arg, ArgMatches, Command};
use grid_batch_core::Hex;
use grid_batch_protocol::SigningKey;

use crate::commands::{failure::Failure, print::print_stdout};

pub(crate) fn command() -> Command {
    let file = || {
        Arg::new("file")
            .required(true)
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
    };
    Command::new("key")
        .about("Makes and shows the keys that sign batches")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("new")
                .about("Makes a secret key, writes it to a new file, and prints its public key")
                .arg(file().help("The new file, which only its owner can read")),
        )
        .subcommand(
            Command::new("show")
                .about("Prints the public key of a secret key")
                .arg(file().help("File with a secret key: 64 hex digits")),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (command, matches) =
        matches.subcommand().ok_or_else(|| Failure::new("see grid-batch key --help"))?;
    let file: &PathBuf = matches.get_one("file").ok_or_else(|| Failure::new("FILE is missing"))?;
    let key = match command {
        "new" => create(file)?,
        _ => read(file)?,
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
    let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let named = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::new(format!(
            "{} exists and is not overwritten; name a new file",
            file.display()
        )),
        _ => Failure::new(format!("cannot make the file {}: {error}", file.display())),
    };
    let mut open = open.map_err(named)?;
    open.write_all(format!("{digits}\n").as_bytes())
        .and_then(|()| open.sync_all())
        .map_err(named)?;
    Ok(key)
}

/// Nearly every number is a key.
fn random_key() -> Result<(SigningKey, String), Failure> {
    loop {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)
            .map_err(|error| Failure::new(format!("the system has no random numbers: {error}")))?;
        if let Ok(key) = SigningKey::from_bytes(secret) {
            return Ok((key, Hex(&secret).to_string()));
        }
    }
}
