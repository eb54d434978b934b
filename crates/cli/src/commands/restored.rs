//! `restored`: a database that was brought back from a backup or moved to another server.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use grid_batch_store::Store;

use crate::commands::{failure::Failure, flags, print::print_stdout};

pub(crate) fn command() -> Command {
    Command::new("restored")
        .about(
            "Puts every open batch of a restored database in doubt: in the time that was lost, each may \
             have been sent",
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
        .args(flags::of_database())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let config = flags::load(matches)?;
    if matches.get_flag("nothing-lost") {
        Store::mark_moved(&config.database, config.store)?;
        print_stdout("recorded where the database is; no batch is in doubt");
        return Ok(ExitCode::SUCCESS);
    }
    let even_if_running = matches.get_flag("even-if-running");
    let in_doubt = Store::mark_restored(&config.database, config.store, even_if_running)?;
    print_stdout(format_args!(
        "{} batches of {} services are in doubt; each continues when evidence or a decision is found",
        in_doubt.batches, in_doubt.services
    ));
    Ok(ExitCode::SUCCESS)
}
