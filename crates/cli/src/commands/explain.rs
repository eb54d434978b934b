//! `explain`: why a batch or a service waits, as a running server explains it.

use std::process::ExitCode;

use clap::{Arg, ArgGroup, ArgMatches, Command, builder::ValueParser};
use grid_batch_client::ClientError;
use serde_json::Value;

use crate::commands::{
    failure::Failure,
    operator::{LINE_WIDTH, ServiceSelection, Word, print_json, wants_json},
    print::print_stdout,
    remote::{self, Server, explanation_lines},
};

pub(crate) fn command() -> Command {
    Command::new("explain")
        .about("Explains why a batch or a service waits, and what can be done")
        .arg(
            Arg::new("batch")
                .value_name("BATCH|SERVICE")
                .value_parser(ValueParser::new(str::parse::<Word>))
                .help(
                    "Id of a batch or a withdrawal, or at least its first 8 characters; or a service or gas admin",
                ),
        )
        .arg(
            Arg::new("service")
                .long("service")
                .value_name("SERVICE")
                .help("A service; with BATCH, the batch's service, if several have this id"),
        )
        .group(ArgGroup::new("of").args(["batch", "service"]).multiple(true).required(true))
        .args(remote::flags())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
    let service = matches.get_one::<String>("service").map(String::as_str);
    let explanation = match (matches.get_one::<Word>("batch"), service) {
        (None, service) => server.client.service(service.unwrap_or_default(), Some("explain"))?,
        (Some(Word::Service(named)), None) => match explain_service(&server, named)? {
            Some(explanation) => explanation,
            None => explain_batch(&server, &Word::Service(named.clone()), None)?,
        },
        (Some(word), service) => explain_batch(&server, word, service)?,
    };
    if wants_json(matches) {
        print_json(&explanation);
    } else {
        explanation_lines(&explanation, LINE_WIDTH).into_iter().for_each(print_stdout);
    }
    Ok(ExitCode::SUCCESS)
}

fn explain_batch(server: &Server, word: &Word, service: Option<&str>) -> Result<Value, Failure> {
    let name = word.batch_name().ok_or_else(|| {
        Failure::usage(
            "there is no such service; to name a batch, give at least 8 characters of its id",
        )
    })?;
    Ok(server.client.batch(&name.prefix, Some("explain"), service)?)
}

/// The explanation of a service. `None`: it never had a batch, so the argument may be the id of a batch.
pub(super) fn explain_service(
    server: &Server,
    named: &ServiceSelection,
) -> Result<Option<Value>, Failure> {
    let service = named.one().ok_or_else(|| Failure::usage("name one service"))?;
    match server.client.service(service.as_str(), Some("explain")) {
        Err(ClientError::Refused { status: 404, .. })
            if Word::Service(named.clone()).batch_name().is_some() =>
        {
            Ok(None)
        }
        explanation => Ok(Some(explanation?)),
    }
}
