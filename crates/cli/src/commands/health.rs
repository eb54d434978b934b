//! `health`: whether a server works, and what does not.

use std::process::ExitCode;

use clap::Args;

use crate::commands::{
    arguments::RemoteArgs,
    failure::Failure,
    remote::{Server, Table, field},
};

/// Prints the health of a running server; the exit code is 0 if it is ready
#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// Asks only whether the server takes requests; needs no token where health is open
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(crate) fn run(args: &HealthArgs) -> Result<ExitCode, Failure> {
    let path = if args.ready { "/health/ready" } else { "/health" };
    let report = Server::of(&args.remote.server)?.client.health(path)?;
    let status = field(&report, "status");
    args.remote.output.show(&report, || {
        let mut table = Table::new(["PART", "STATUS", "REASON"]);
        table.add(["server".to_owned(), status.clone(), String::new()]);
        for (name, part) in report["parts"].as_object().into_iter().flatten() {
            table.add([name.clone(), field(part, "status"), field(part, "reason")]);
        }
        table.print();
    });
    Ok(if status == "unhealthy" { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
