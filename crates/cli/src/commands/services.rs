//! `services`: the services of a running server, and what stops them.

use std::process::ExitCode;

use clap::Args;
use grid_batch_client::given;
use serde_json::Value;

use crate::commands::{
    arguments::RemoteArgs,
    failure::Failure,
    print::print_stdout,
    remote::{Server, Table, age, field},
};

/// Lists the services of a running server that have open batches, and what stops them
#[derive(Debug, Args)]
pub(crate) struct ServicesArgs {
    /// Also services without an open batch
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(crate) fn run(args: &ServicesArgs) -> Result<ExitCode, Failure> {
    let server = Server::of(&args.remote.server)?;
    let filters = given([("idle", args.all.then_some("true"))]);
    let (services, _) = server.read_list("/v1/services", &filters, usize::MAX)?;
    Ok(args.remote.output.show_list("services", &services, || print(&services)))
}

fn print(services: &[Value]) {
    if services.is_empty() {
        return print_stdout("No service has an open batch.");
    }
    let mut table = Table::new(["SERVICE", "OPEN", "UNDER WAY", "OLDEST", "HELD", "PROBLEM"]);
    for service in services {
        table.add([
            field(service, "service_id"),
            field(service, "open"),
            field(service, "under_way"),
            age(service, "oldest_stored_at"),
            field(service, "held"),
            problem(service),
        ]);
    }
    table.print();
}

/// What stops the service, in a few words.
fn problem(service: &Value) -> String {
    let mut problems = Vec::new();
    if !service["paused"].is_null() {
        problems.push("paused".to_owned());
    }
    if service["halts"].as_u64().unwrap_or(0) > 0 {
        problems.push("an invalid batch stops it".to_owned());
    }
    if service["owner"].is_null() {
        problems.push("no instance claims it".to_owned());
    }
    if let Some(error) = service["failing"].as_str() {
        problems.push(error.to_owned());
    }
    if let Some(reason) = service["parked"].as_str() {
        problems.push(format!("parked: {reason}"));
    }
    problems.join("; ")
}
