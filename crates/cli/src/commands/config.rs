//! `config`: the effective configuration, as a file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::commands::{failure::Failure, flags, print::print_stdout};

pub(crate) fn command() -> Command {
    Command::new("config")
        .about("Prints the effective configuration, or writes it, as a configuration file")
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Writes this file instead of standard output; only its owner can read it"),
        )
        .arg(
            Arg::new("force")
                .long("force")
                .action(ArgAction::SetTrue)
                .requires("output")
                .help("Replaces the file if it exists"),
        )
        .arg(Arg::new("show-secrets").long("show-secrets").action(ArgAction::SetTrue).help(
            "Prints secrets too, instead of ***. Without it, give them again where the file is used: in \
             files, such as database_file, or in the environment",
        ))
        .args(flags::settings())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let output = matches.get_one::<PathBuf>("output");
    if output.is_none() {
        refuse_to_print_into(&flags::config_file(matches))?;
    }
    let config = flags::load(matches)?;
    let text = match matches.get_flag("show-secrets") {
        true => config.with_secrets().to_string(),
        false => config.to_string(),
    };
    match output {
        Some(file) => write(file, &text, matches.get_flag("force"))?,
        None => print_stdout(text.trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

/// A shell that redirects the output into the configuration file has emptied it before this command can
/// read it: what would be printed are the defaults.
fn refuse_to_print_into(file: &Path) -> Result<(), Failure> {
    if !is_standard_output(file) {
        return Ok(());
    }
    let file = file.display();
    Err(Failure::new(format!(
        "standard output is the configuration file {file} itself, which the shell has emptied if it was \
         redirected with >; nothing is printed. To write the file, use --output {file} --force"
    )))
}

#[cfg(unix)]
fn is_standard_output(file: &Path) -> bool {
    use std::os::{fd::AsFd, unix::fs::MetadataExt};

    let stdout = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    match (stdout.and_then(|stdout| stdout.metadata()), fs::metadata(file)) {
        (Ok(stdout), Ok(file)) => {
            file.is_file() && (stdout.dev(), stdout.ino()) == (file.dev(), file.ino())
        }
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_standard_output(_: &Path) -> bool {
    false
}

/// Writes the file as a whole or not at all.
fn write(file: &Path, text: &str, replace: bool) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::new(format!("the file {} cannot be written: {error}", file.display()))
    };
    if !replace && fs::symlink_metadata(file).is_ok() {
        let file = file.display();
        return Err(Failure::new(format!("the file {file} exists; add --force to replace it")));
    }
    let mut temporary = file.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let written = write_private(&temporary, text).and_then(|()| fs::rename(&temporary, file));
    written.map_err(|error| {
        // The error of the write counts; the file may not be there.
        let _ = fs::remove_file(&temporary);
        failed(error)
    })
}

fn write_private(file: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut opened = options.open(file)?;
    opened.write_all(text.trim_start().as_bytes())?;
    opened.sync_all()
}
