//! `health`: whether a server works, and what does not.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::commands::{
    failure::Failure,
    operator::{print_json, wants_json},
    remote::{self, Server, Table, field},
};

pub(crate) fn command() -> Command {
    Command::new("health")
        .about("Prints the health of a running server; the exit code is 0 if it is ready")
        .arg(Arg::new("ready").long("ready").action(ArgAction::SetTrue).help(
            "Asks only whether the server takes requests; needs no token where health is open",
        ))
        .args(remote::flags())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let path = if matches.get_flag("ready") { "/health/ready" } else { "/health" };
    let report = Server::of(matches)?.client.health(path)?;
    let status = field(&report, "status");
    if wants_json(matches) {
        print_json(&report);
    } else {
        let mut table = Table::new(["PART", "STATUS", "REASON"]);
        table.add(["server".to_owned(), status.clone(), String::new()]);
        for (name, part) in report["parts"].as_object().into_iter().flatten() {
            table.add([name.clone(), field(part, "status"), field(part, "reason")]);
        }
        table.print();
    }
    Ok(if status == "unhealthy" { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
