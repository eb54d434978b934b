//! `gas-admins`: the accounts whose keys are configured.

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use grid_batch_service::gas_admin_addresses;

use crate::commands::{failure::Failure, flags, print::print_stdout};

pub(crate) fn command() -> Command {
    Command::new("gas-admins")
        .about(
            "Lists the names and addresses of the gas admins, and so checks their keys. A remote \
             signer is not asked",
        )
        .args(flags::of_database())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    for (name, address) in gas_admin_addresses(&flags::load(matches)?)? {
        print_stdout(format_args!("{name} {address}"));
    }
    Ok(ExitCode::SUCCESS)
}
