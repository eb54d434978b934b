//! `explain`: why a batch or a service waits, as a running server tells it.

use std::process::ExitCode;

use clap::{Arg, ArgGroup, ArgMatches, Command, builder::ValueParser};
use grid_batch_core::HeaderIdPrefix;
use serde_json::Value;

use crate::commands::{
    failure::Failure,
    operator::{print_json, print_wrapped, wants_json},
    print::print_stdout,
    remote::{self, Server},
};

pub(crate) fn command() -> Command {
    Command::new("explain")
        .about("Tells why a batch or a service waits, and what can be done")
        .arg(
            Arg::new("batch")
                .value_name("BATCH")
                .value_parser(ValueParser::new(str::parse::<HeaderIdPrefix>))
                .help("Id of a batch, or its first digits, at least 8"),
        )
        .arg(
            Arg::new("service")
                .long("service")
                .value_name("SERVICE")
                .help("A service; with BATCH, the one of those that have a batch with this id"),
        )
        .group(ArgGroup::new("of").args(["batch", "service"]).multiple(true).required(true))
        .args(remote::flags())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
    let service = matches.get_one::<String>("service").map(String::as_str);
    let explanation = match (matches.get_one::<HeaderIdPrefix>("batch"), service) {
        (Some(id), service) => server.client.batch(id, Some("explain"), service)?,
        (None, service) => server.client.service(service.unwrap_or_default(), Some("explain"))?,
    };
    match wants_json(matches) {
        true => print_json(&explanation),
        false => print(&explanation),
    }
    Ok(ExitCode::SUCCESS)
}

fn print(explanation: &Value) {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    print_wrapped("", &text(explanation, "text"));
    let actions = explanation["actions"].as_array().map_or(&[][..], Vec::as_slice);
    if actions.is_empty() {
        return;
    }
    print_stdout("\nPossible:");
    for action in actions {
        let id = text(action, "batch_id");
        let of_batch = id.get(..12).map(|id| format!(" {id}")).unwrap_or_default();
        let verb = text(action, "verb");
        print_wrapped(&format!("  {verb}{of_batch}: "), &text(action, "text"));
    }
}
