//! The command line: each command is a file.

mod actions;
mod batch;
mod config;
mod decide;
#[cfg(feature = "demo")]
mod demo;
mod events;
mod exit;
mod explain;
mod failure;
mod flags;
mod gas_admins;
mod halts;
mod held;
mod hold;
mod key;
mod ledger;
#[cfg(feature = "demo")]
mod ledger_sim;
mod list;
mod logging;
#[cfg(feature = "evm")]
mod move_withdrawals;
mod nonce;
mod operator;
mod pause;
mod print;
mod remote;
mod restored;
mod retention;
mod retry;
mod retry_withdrawals;
mod serve;
mod services;
mod show;
mod signals;
mod submit;
mod token;
mod usage;
mod wait;
mod webhooks;

use std::{ffi::OsString, process::ExitCode};

use clap::{ArgMatches, Command};

use failure::Failure;

/// Parses the command line and runs its command.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    let matches = match program().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => return usage::print(&error, &arguments),
    };
    let ended = dispatch(&matches);
    // Repeated lines are still to be summed up.
    log::logger().flush();
    match ended {
        Ok(code) => code,
        Err(failure) => {
            print::print_stderr(format_args!("grid-batch: {failure}"));
            failure.exit_code()
        }
    }
}

fn program() -> Command {
    let program = Command::new("grid-batch")
        .about("Stores batches, submits them to a distributed ledger in order, and follows each to its end")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve::command())
        .subcommand(config::command())
        .subcommand(submit::command())
        .subcommand(list::status_command())
        .subcommand(list::list_command())
        .subcommand(explain::command())
        .subcommand(services::command())
        .subcommand(events::command())
        .subcommand(key::command())
        .subcommand(batch::command())
        .subcommand(show::command())
        .subcommand(held::command())
        .subcommand(hold::hold_command())
        .subcommand(hold::release_command())
        .subcommand(decide::command())
        .subcommand(actions::command())
        .subcommand(halts::list_command())
        .subcommand(halts::continue_command())
        .subcommand(halts::end_command())
        .subcommand(pause::pause_command())
        .subcommand(pause::resume_command())
        .subcommand(pause::drain_command())
        .subcommand(pause::release_claim_command())
        .subcommand(retry::command())
        .subcommand(retry_withdrawals::command())
        .subcommand(ledger::command())
        .subcommand(restored::command())
        .subcommand(retention::command())
        .subcommand(token::command())
        .subcommand(nonce::command())
        .subcommand(gas_admins::command())
        .subcommand(webhooks::command());
    #[cfg(feature = "evm")]
    let program = program.subcommand(move_withdrawals::command());
    #[cfg(feature = "demo")]
    let program = program.subcommand(demo::command()).subcommand(ledger_sim::command());
    program
}

fn dispatch(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("serve", matches)) => serve::run(matches),
        Some(("config", matches)) => config::run(matches),
        Some(("submit", matches)) => submit::run(matches),
        Some(("status", matches)) => list::status(matches),
        Some(("list", matches)) => list::list(matches),
        Some(("explain", matches)) => explain::run(matches),
        Some(("services", matches)) => services::run(matches),
        Some(("events", matches)) => events::run(matches),
        Some(("key", matches)) => key::run(matches),
        Some(("batch", matches)) => batch::run(matches),
        Some(("show", matches)) => show::run(matches),
        Some(("held", matches)) => held::run(matches),
        Some(("hold", matches)) => hold::hold(matches),
        Some(("release", matches)) => hold::release(matches),
        Some(("decide", matches)) => decide::run(matches),
        Some(("actions", matches)) => actions::run(matches),
        Some(("halts", matches)) => halts::list(matches),
        Some(("continue", matches)) => halts::continue_after(matches),
        Some(("end-following", matches)) => halts::end_following(matches),
        Some(("pause", matches)) => pause::pause(matches),
        Some(("resume", matches)) => pause::resume(matches),
        Some(("drain", matches)) => pause::drain(matches),
        Some(("release-claim", matches)) => pause::release_claim(matches),
        Some(("retry", matches)) => retry::run(matches),
        Some(("retry-withdrawals", matches)) => retry_withdrawals::run(matches),
        Some(("ledger", matches)) => ledger::run(matches),
        Some(("restored", matches)) => restored::run(matches),
        Some(("retention", matches)) => retention::run(matches),
        Some(("token", matches)) => token::run(matches),
        Some(("nonce", matches)) => nonce::run(matches),
        Some(("gas-admins", matches)) => gas_admins::run(matches),
        Some(("webhooks", matches)) => webhooks::run(matches),
        #[cfg(feature = "evm")]
        Some(("move-withdrawals", matches)) => move_withdrawals::run(matches),
        #[cfg(feature = "demo")]
        Some(("demo", matches)) => demo::run(matches),
        #[cfg(feature = "demo")]
        Some(("ledger-sim", matches)) => ledger_sim::run(matches),
        _ => Err(Failure::new("there is no such command; see grid-batch --help")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_definition_is_valid() {
        program().debug_assert();
    }
}
