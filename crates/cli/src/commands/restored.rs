//! `restored`: a database that was brought back from a backup or moved to another server.

use std::{process::ExitCode, thread, time::Duration};

use clap::Args;
use grid_batch_core::Clock;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_store::Store;
use serde_json::json;

use crate::commands::{
    arguments::ActionArgs,
    failure::Failure,
    print::{print_stderr, print_stdout},
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

/// Waits for the end of the leases that the database has from its backup. An instance that runs renews its lease, and is
/// then the reason why nothing is changed.
fn wait_for_leases(store: &Store) {
    let instances = store.instances().unwrap_or_default();
    let Some(latest) = instances.iter().map(|instance| instance.lease_ends_at).max() else {
        return;
    };
    let left = latest.since(store.clock().now());
    if !left.is_zero() {
        print_stderr(format_args!(
            "grid-batch: waits {} s for the end of the leases that instances had",
            left.as_secs() + 1
        ));
        thread::sleep(left + Duration::from_millis(100));
    }
}

pub(crate) fn run(args: &RestoredArgs) -> Result<ExitCode, Failure> {
    let ActionArgs { asked, output, source } = &args.action;
    // The command itself decides about lost commits, so the store does not look for them.
    let server = Server::at(source, |url, options| {
        let store = Store::open_restored(url, options)?;
        // A lock beside an SQLite file shows whether an instance runs.
        if !args.even_if_running && url.file().is_none() {
            wait_for_leases(&store);
        }
        Ok(store)
    })?;
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
