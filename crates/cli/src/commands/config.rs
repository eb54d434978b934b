//! `config`: the configuration as a file, and the mistakes in it.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use grid_batch_service::{Config, LedgerConfig, settings_reference};

use crate::commands::{
    failure::Failure,
    flags,
    print::{print_stderr, print_stdout},
};

pub(crate) fn command() -> Command {
    Command::new("config")
        .about("Prints, checks or writes the configuration")
        .long_about(
            "Prints the effective configuration, from the file, the environment and the flags, as a \
             configuration file with help for every setting. `config check` finds mistakes in it, and \
             `config init` writes a new file.",
        )
        .args_conflicts_with_subcommands(true)
        .after_help(flags::OF_SETTINGS)
        .args(output_flags())
        .arg(secrets_flag())
        .args(flags::settings())
        .subcommand(
            Command::new("show")
                .about("Prints the effective configuration")
                .arg(secrets_flag())
                .args(flags::settings()),
        )
        .subcommand(
            Command::new("check")
                .about("Checks the configuration; the exit code is 78 if a server could not start with it")
                .args(flags::settings()),
        )
        .subcommand(
            Command::new("init")
                .about("Writes a configuration file with every setting, its help and its value")
                .arg(output_flags()[0].clone().default_value(Config::FILE))
                .arg(output_flags()[1].clone())
                .arg(secrets_flag())
                .args(flags::settings()),
        )
        .subcommand(
            Command::new("reference")
                .about("Prints what each setting does, and when to change it"),
        )
}

fn output_flags() -> [Arg; 2] {
    [
        Arg::new("output")
            .long("output")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("Writes this file; only its owner can read it"),
        Arg::new("force")
            .long("force")
            .action(ArgAction::SetTrue)
            .requires("output")
            .help("Replaces the file if it exists"),
    ]
}

fn secrets_flag() -> Arg {
    Arg::new("show-secrets").long("show-secrets").action(ArgAction::SetTrue).help(
        "Prints secrets too, instead of ***. Without it, give them again where the file is used: in \
         files, such as database = { file = \"PATH\" }, or in the environment",
    )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("check", matches)) => check(matches),
        Some(("init", matches)) => {
            let file: Option<&PathBuf> = matches.get_one("output");
            let file = file.ok_or_else(|| Failure::usage("the file is missing"))?;
            write(file, &text(matches)?, matches.get_flag("force"))?;
            let file = file.display();
            print_stdout(format_args!("{file} is written; set ledger.kind and ledger.urls in it"));
            Ok(ExitCode::SUCCESS)
        }
        Some(("reference", _)) => {
            print_stdout(settings_reference().trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Some((_, matches)) => show(matches),
        None => match matches.get_one::<PathBuf>("output") {
            Some(file) => {
                write(file, &text(matches)?, matches.get_flag("force"))?;
                Ok(ExitCode::SUCCESS)
            }
            None => show(matches),
        },
    }
}

fn show(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    refuse_to_print_into(&flags::config_file(matches))?;
    print_stdout(text(matches)?.trim_end());
    Ok(ExitCode::SUCCESS)
}

fn check(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let config = flags::load(matches)?;
    if config.ledger.kind.is_none() {
        return Err(Failure::configuration(format!(
            "ledger.kind is not set; set it to {}, and ledger.urls to its nodes",
            flags::ledger_kinds()
        )));
    }
    if config.lacks_ledger_name() {
        let rule = LedgerConfig::NAME_RULE;
        return Err(Failure::configuration(format!("ledger.name is not set; {rule}")));
    }
    for old_name in config.old_names() {
        print_stderr(format_args!("grid-batch: {old_name}"));
    }
    for secret in config.readable_secrets() {
        print_stderr(format_args!("grid-batch: {}: {secret}", secret.name()));
    }
    print_stdout("the configuration is valid");
    Ok(ExitCode::SUCCESS)
}

fn text(matches: &ArgMatches) -> Result<String, Failure> {
    let config = flags::load(matches)?;
    Ok(if matches.get_flag("show-secrets") {
        config.with_secrets().to_string()
    } else {
        config.to_string()
    })
}

/// A shell that redirects the output into the configuration file has emptied it before this command can read it: the
/// defaults would be printed.
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
