//! `explain`: why a batch or a service waits, as a running server tells it.

use std::process::ExitCode;

use clap::{Arg, ArgGroup, ArgMatches, Command, builder::ValueParser};
use grid_batch_core::HeaderIdPrefix;

use crate::commands::{
    failure::Failure,
    operator::{LINE_WIDTH, print_json, wants_json},
    print::print_stdout,
    remote::{self, Server, explanation_lines},
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
        false => explanation_lines(&explanation, LINE_WIDTH).into_iter().for_each(print_stdout),
    }
    Ok(ExitCode::SUCCESS)
}
