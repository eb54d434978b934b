//! `list` and `status`: batches of a running server.

use std::process::ExitCode;

use clap::{Args, value_parser};
use grid_batch_client::given;
use grid_batch_core::queries::ItemIdPrefix;
use serde_json::Value;

use crate::commands::{
    arguments::RemoteArgs,
    failure::Failure,
    print::print_stdout,
    remote::{Server, Table, age, field},
};

/// Lists the batches of a running server, the newest first
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only batches of this service
    #[arg(long, value_name = "SERVICE")]
    service: Option<String>,
    #[arg(
        long,
        value_name = "STATES",
        help = "Only batches in these states, separated by commas: new, submitting, delayed, in_doubt, absent, \
                pending, valid, invalid, committed, open, ended"
    )]
    state: Option<String>,
    /// Only batches with this label
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Only batches whose last error contains this text
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// Only batches stored within this time, such as 15m
    #[arg(long, value_name = "AGE")]
    newer_than: Option<String>,
    /// Only batches stored longer ago, such as 2h
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// Maximum number of batches
    #[arg(long, value_name = "NUMBER", default_value = "20", value_parser = value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// Prints the state of batches of a running server
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Ids of batches, or at least their first 8 characters
    #[arg(required = true, value_name = "BATCH")]
    batch: Vec<ItemIdPrefix>,
    /// The service, if several have a batch with one of the ids
    #[arg(long, value_name = "SERVICE")]
    service: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(crate) fn list(args: &ListArgs) -> Result<ExitCode, Failure> {
    let filters = given([
        ("service_id", args.service.as_deref()),
        ("state", args.state.as_deref()),
        ("label", args.label.as_deref()),
        ("error_contains", args.error.as_deref()),
        ("newer_than", args.newer_than.as_deref()),
        ("older_than", args.older_than.as_deref()),
    ]);
    let server = Server::of(&args.remote.server)?;
    let (batches, has_more) = server.read_list("/v1/batches", &filters, args.limit as usize)?;
    Ok(args.remote.output.show_list("batches", &batches, || {
        print(&batches);
        if has_more {
            print_stdout(format_args!("There are more; --limit is {}.", args.limit));
        }
    }))
}

pub(crate) fn status(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let server = Server::of(&args.remote.server)?;
    let read = |id| server.client.batch(id, args.service.as_deref());
    let batches = args.batch.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(args.remote.output.show_list("batches", &batches, || print(&batches)))
}

fn print(batches: &[Value]) {
    if batches.is_empty() {
        return print_stdout("No batch matches.");
    }
    let mut table = Table::new(["BATCH", "SERVICE", "STATE", "FOR", "TRIES", "LABEL", "ERROR"]);
    for batch in batches {
        let id = field(batch, "id");
        let held = if batch["held"].is_null() { "" } else { ", held" };
        table.add([
            id.get(..12).unwrap_or(&id).to_owned(),
            field(batch, "service_id"),
            format!("{}{held}", field(batch, "state")),
            Some(age(batch, "since"))
                .filter(|age| !age.is_empty())
                .unwrap_or(age(batch, "stored_at")),
            field(batch, "attempts"),
            field(batch, "label"),
            field(batch, "last_error"),
        ]);
    }
    table.print();
}
