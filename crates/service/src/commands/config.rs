use std::process::ExitCode;

use clap::{ArgMatches, Command};

use crate::commands::{failure::Failure, flags, output::say};

pub(crate) fn command() -> Command {
    Command::new("config")
        .about("Prints the configuration in force, in the form of its file")
        .args(flags::settings())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let config = flags::load(matches)?;
    say(config.to_string().trim_end());
    Ok(ExitCode::SUCCESS)
}
