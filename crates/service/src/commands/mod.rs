//! What the program can be told to do, each a file.

mod config;
mod demo;
mod failure;
mod flags;
mod held;
mod ledger_sim;
mod logging;
mod output;
mod serve;
mod signals;
mod withdrawal_demo;

use std::{ffi::OsString, process::ExitCode};

use clap::{ArgMatches, Command};

use failure::Failure;

/// Does what the command line says.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let matches = match program().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => {
            // Where the text cannot be printed, there is nobody to tell.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match dispatch(&matches) {
        Ok(code) => code,
        Err(failure) => {
            output::say_aside(format_args!("grid-batch: {failure}"));
            ExitCode::FAILURE
        }
    }
}

fn program() -> Command {
    Command::new("grid-batch")
        .about("Stores batches, submits them to a distributed ledger in order, and follows each to its end")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve::command())
        .subcommand(config::command())
        .subcommand(held::held_command())
        .subcommand(held::decide_command())
        .subcommand(demo::command())
        .subcommand(ledger_sim::command())
}

fn dispatch(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("serve", matches)) => serve::run(matches),
        Some(("config", matches)) => config::run(matches),
        Some(("held", matches)) => held::list(matches),
        Some(("decide", matches)) => held::decide(matches),
        Some(("demo", matches)) => demo::run(matches),
        Some(("ledger-sim", matches)) => ledger_sim::run(matches),
        _ => Err(Failure::new("there is no such command; see grid-batch --help")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_stands() {
        program().debug_assert();
    }
}
