//! `services`: the services of a running server, and what stops them.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    operator::{print_json, wants_json},
    print::print_stdout,
    remote::{self, Server, Table, age, field},
};

pub(crate) fn command() -> Command {
    Command::new("services")
        .about("Lists the services of a running server that have open batches, and what stops them")
        .arg(
            Arg::new("all")
                .long("all")
                .action(ArgAction::SetTrue)
                .help("Also services without an open batch"),
        )
        .args(remote::flags())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
    let idle = matches.get_flag("all").then_some(("idle", "true"));
    let (services, _) = server.read_list("/v1/services", &Vec::from_iter(idle), usize::MAX)?;
    if wants_json(matches) {
        print_json(&json!({"services": services}));
        return Ok(ExitCode::SUCCESS);
    }
    if services.is_empty() {
        print_stdout("No service has an open batch.");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["SERVICE", "OPEN", "UNDER WAY", "OLDEST", "HELD", "PROBLEM"]);
    for service in &services {
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
    Ok(ExitCode::SUCCESS)
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
