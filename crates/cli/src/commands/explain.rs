//! `explain`: why a batch or a service waits, as a running server tells it.

use std::process::ExitCode;

use clap::{Arg, ArgGroup, ArgMatches, Command, builder::ValueParser};
use serde_json::Value;

use crate::commands::{
    failure::Failure,
    operator::{LINE_WIDTH, ServiceSelection, Word, print_json, wants_json},
    print::print_stdout,
    remote::{self, Server, explanation_lines},
};

pub(crate) fn command() -> Command {
    Command::new("explain")
        .about("Tells why a batch or a service waits, and what can be done")
        .arg(
            Arg::new("batch")
                .value_name("BATCH|SERVICE")
                .value_parser(ValueParser::new(str::parse::<Word>))
                .help(
                    "Id of a batch or a withdrawal, or its first digits, at least 8; or a service, or the name of a \
                     gas admin",
                ),
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
    let explanation = match (matches.get_one::<Word>("batch"), service) {
        (Some(Word::Batch(name)), service) => {
            server.client.batch(&name.prefix, Some("explain"), service)?
        }
        (Some(Word::Service(named)), None) => explain_service(&server, named)?,
        (Some(Word::Service(_)), Some(_)) => {
            return Err(Failure::usage(
                "two services are named; name one, and optionally the id of a batch, with at least 8 digits",
            ));
        }
        (None, service) => server.client.service(service.unwrap_or_default(), Some("explain"))?,
    };
    match wants_json(matches) {
        true => print_json(&explanation),
        false => explanation_lines(&explanation, LINE_WIDTH).into_iter().for_each(print_stdout),
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn explain_service(server: &Server, named: &ServiceSelection) -> Result<Value, Failure> {
    let service = remote::service_of(Some(named))?;
    let service = service.ok_or_else(|| Failure::usage("name one service"))?;
    Ok(server.client.service(service, Some("explain"))?)
}
