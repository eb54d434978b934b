//! `withdrawal`: requests, lists, shows, cancels and retries withdrawals.

mod amount;
mod cancel;
mod list;
mod name;
mod request;
mod retry;
mod show;

use std::process::ExitCode;

use clap::{ArgMatches, Command};

use crate::commands::failure::Failure;

#[cfg(feature = "evm")]
pub(crate) use retry::{retry_filtered, retry_withdrawals_command};

pub(crate) fn command() -> Command {
    Command::new("withdrawal")
        .visible_alias("withdrawals")
        .about("Requests, lists, shows, cancels and retries withdrawals")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(request::command())
        .subcommand(list::command())
        .subcommand(show::command())
        .subcommand(cancel::command())
        .subcommand(retry::command())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("request", matches)) => request::run(matches),
        Some(("list", matches)) => list::run(matches),
        Some(("show", matches)) => show::run(matches),
        Some(("cancel", matches)) => cancel::run(matches),
        Some(("retry", matches)) => retry::run(matches),
        _ => Err(Failure::usage("there is no such command; see grid-batch withdrawal --help")),
    }
}
