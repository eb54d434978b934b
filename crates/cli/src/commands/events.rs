//! `events`: what happens to the batches of a running server.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use grid_batch_client::given;
use serde_json::Value;

use crate::commands::{
    arguments::RemoteArgs,
    failure::Failure,
    print::print_stdout,
    remote::{Retries, Server, entries, field},
};

/// Prints the events of batches in order, and with --follow new ones
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Only events of this service
    #[arg(long, value_name = "SERVICE")]
    service: Option<String>,
    /// Only events of these kinds, separated by commas, such as held,status
    #[arg(long, value_name = "KINDS")]
    kind: Option<String>,
    /// Position to start after [default: before the oldest event; with --follow, now]
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Print new events until the command is stopped
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(crate) fn run(args: &EventsArgs) -> Result<ExitCode, Failure> {
    let server = Server::of(&args.remote.server)?;
    let follow = args.follow;
    let unchanging = given([
        ("limit", Some("1000")),
        ("service_id", args.service.as_deref()),
        ("kind", args.kind.as_deref()),
        ("wait", follow.then_some("30")),
    ]);
    let from = args.after.as_deref().unwrap_or(if follow { "latest" } else { "oldest" });
    let mut after = from.to_owned();
    loop {
        let parameters = [&unchanging[..], &[("after", &after)]].concat();
        // A program that follows events continues after the server was busy.
        let retries =
            Retries::until(if follow { Duration::from_secs(300) } else { Duration::ZERO });
        let page = retries.run(|| server.client.get("/v1/events", &parameters))?;
        entries(&page, "data").iter().for_each(|event| print(args, event));
        let more = page["more"].as_bool().unwrap_or(false);
        after = field(&page, "next");
        if !follow && !more {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn print(args: &EventsArgs, event: &Value) {
    if args.remote.output.json {
        return print_stdout(event);
    }
    let id = field(event, "batch_id");
    let detail = field(event, "detail");
    let detail = if detail.is_empty() { detail } else { format!(": {detail}") };
    print_stdout(format_args!(
        "{} {} {} {} {}{detail}",
        field(event, "at"),
        field(event, "service_id"),
        id.get(..12).unwrap_or(&id),
        field(event, "kind"),
        field(event, "state"),
    ));
}
