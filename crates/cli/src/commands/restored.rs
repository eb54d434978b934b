//! `restored`: a database that was brought back from a backup or moved to another server.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use grid_batch_store::Store;
use serde_json::json;

use crate::commands::{
    failure::Failure,
    flags,
    operator::{is_dry_run, print_json, wants_json},
    print::print_stdout,
    remote::{self, Server, Source, field},
};

pub(crate) fn command() -> Command {
    Command::new("restored")
        .about(
            "Puts every open batch of a restored database in doubt, because it may have been sent in the lost \
             time",
        )
        .arg(
            Arg::new("even-if-running")
                .long("even-if-running")
                .action(ArgAction::SetTrue)
                .help("Do not refuse while instances run"),
        )
        .arg(
            Arg::new("nothing-lost")
                .long("nothing-lost")
                .action(ArgAction::SetTrue)
                .conflicts_with("even-if-running")
                .help(
                    "The database was moved with every commit, such as by pg_upgrade or a dump of a \
                     stopped server: put nothing in doubt",
                ),
        )
        .args(remote::action_flags())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = match Source::of(matches) {
        Source::Server => Server::of(matches)?,
        // The command itself decides about lost commits, so the store does not look for them.
        Source::Database => Server::over(flags::load(matches)?, Store::open_restored)?,
    };
    let nothing_lost = matches.get_flag("nothing-lost");
    let fields = json!({
        "nothing_lost": nothing_lost,
        "even_if_running": matches.get_flag("even-if-running"),
    });
    let done = server.act(matches, "/v1/database/restored", &[], fields);
    let done = done.map_err(Server::failed)?;
    if wants_json(matches) {
        print_json(&done);
        return Ok(ExitCode::SUCCESS);
    }
    let would = if is_dry_run(matches) { "nothing changed; without --dry-run: " } else { "" };
    if nothing_lost {
        print_stdout(format_args!("{would}recorded where the database is; no batch is in doubt"));
        return Ok(ExitCode::SUCCESS);
    }
    let (batches, services) = (field(&done, "batches"), field(&done, "services"));
    print_stdout(format_args!(
        "{would}{batches} batches of {services} services are in doubt; each continues when evidence or a \
         decision is found"
    ));
    Ok(ExitCode::SUCCESS)
}
