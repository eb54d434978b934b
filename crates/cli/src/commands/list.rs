//! `list` and `status`: batches of a running server.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, builder::ValueParser};
use grid_batch_core::queries::ItemIdPrefix;
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    operator::{print_json, wants_json},
    print::print_stdout,
    remote::{self, ListFilter, Server, Table, age, field},
};

const FILTERS: [ListFilter; 6] = [
    ListFilter::new("service", "service_id", "SERVICE", "Only batches of this service"),
    ListFilter::new(
        "state",
        "state",
        "STATES",
        "Only batches in these states, separated by commas: new, submitting, delayed, in_doubt, absent, pending, \
         valid, invalid, committed, open, ended",
    ),
    ListFilter::new("label", "label", "TEXT", "Only batches with this label"),
    ListFilter::new(
        "error",
        "error_contains",
        "TEXT",
        "Only batches whose last error contains this text",
    ),
    ListFilter::new(
        "newer-than",
        "newer_than",
        "AGE",
        "Only batches stored within this time, such as 15m",
    ),
    ListFilter::new(
        "older-than",
        "older_than",
        "AGE",
        "Only batches stored longer ago, such as 2h",
    ),
];

pub(crate) fn list_command() -> Command {
    Command::new("list")
        .about("Lists the batches of a running server, the newest first")
        .args(remote::list_flags(&FILTERS, "Maximum number of batches"))
        .args(remote::flags())
}

pub(crate) fn status_command() -> Command {
    Command::new("status")
        .about("Prints the state of batches of a running server")
        .arg(
            Arg::new("batch")
                .required(true)
                .num_args(1..)
                .value_name("BATCH")
                .value_parser(ValueParser::new(str::parse::<ItemIdPrefix>))
                .help("Ids of batches, or at least their first 8 characters"),
        )
        .arg(
            Arg::new("service")
                .long("service")
                .value_name("SERVICE")
                .help("The service, if several have a batch with one of the ids"),
        )
        .args(remote::flags())
}

pub(crate) fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
    let listed = server.read_filtered("/v1/batches", &FILTERS, matches)?;
    print(matches, &listed.entries);
    listed.print_rest(matches);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn status(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
    let service = matches.get_one::<String>("service").map(String::as_str);
    let ids = matches.get_many::<ItemIdPrefix>("batch").into_iter().flatten();
    let read = |id| server.client.batch(id, None, service);
    let batches = ids.map(read).collect::<Result<Vec<_>, _>>()?;
    print(matches, &batches);
    Ok(ExitCode::SUCCESS)
}

fn print(matches: &ArgMatches, batches: &[Value]) {
    if wants_json(matches) {
        return print_json(&json!({"batches": batches}));
    }
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
