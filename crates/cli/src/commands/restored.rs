//! `restored`: a database that was brought back from a backup or moved to another server.

use std::process::ExitCode;

use clap::Args;
use grid_batch_store::Store;
use serde_json::json;

use crate::commands::{
    arguments::ActionArgs,
    failure::Failure,
    print::print_stdout,
    remote::{Server, field},
};

/// Puts every open batch of a restored database in doubt, because it may have been sent in the lost time
#[derive(Debug, Args)]
pub(crate) struct RestoredArgs {
    /// Do not refuse while instances run
    #[arg(long)]
    even_if_running: bool,
    #[arg(
        long,
        conflicts_with = "even_if_running",
        help = "The database was moved with every commit, such as by pg_upgrade or a dump of a stopped server: put \
                nothing in doubt"
    )]
    nothing_lost: bool,
    #[command(flatten)]
    action: ActionArgs,
}

pub(crate) fn run(args: &RestoredArgs) -> Result<ExitCode, Failure> {
    let ActionArgs { asked, output, source } = &args.action;
    // The command itself decides about lost commits, so the store does not look for them.
    let server = Server::at(source, Store::open_restored)?;
    let fields =
        json!({ "nothing_lost": args.nothing_lost, "even_if_running": args.even_if_running });
    let done = server.act(asked, "/v1/database/restored", &[], fields);
    let done = done.map_err(Server::failed)?;
    let (would, batches, services) =
        (asked.run.would(), field(&done, "batches"), field(&done, "services"));
    Ok(output.show(&done, || {
        if args.nothing_lost {
            print_stdout(format_args!(
                "{would}recorded where the database is; no batch is in doubt"
            ));
        } else {
            print_stdout(format_args!(
                "{would}{batches} batches of {services} services are in doubt; each continues when evidence or a \
                 decision is found"
            ));
        }
    }))
}
