//! `batch`: makes signed batches, without an SDK of the ledger.

mod cbor;
mod description;
mod intkey;
mod make;

use std::process::ExitCode;

use clap::{ArgMatches, Command};

use crate::commands::failure::Failure;

pub(crate) fn command() -> Command {
    Command::new("batch")
        .about("Makes signed batches")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(make::command())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("make", matches)) => make::run(matches),
        _ => Err(Failure::new("there is no such command; see grid-batch batch --help")),
    }
}
