use std::process::ExitCode;

use clap::{ArgMatches, Command};

use crate::commands::{failure::Failure, flags, print::print_stdout};

pub(crate) fn command() -> Command {
    Command::new("config")
        .about("Prints the effective configuration, as a configuration file")
        .args(flags::settings())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let config = flags::load(matches)?;
    print_stdout(config.to_string().trim_end());
    Ok(ExitCode::SUCCESS)
}
