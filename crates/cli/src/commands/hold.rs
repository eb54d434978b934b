//! `held` and `decide`: batches that wait for an operator's decision.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use grid_batch_core::{ChangeOutcome, Decision, HeaderId, ServiceId, StoredBatch};
use grid_batch_store::Store;

use crate::commands::{failure::Failure, flags, print::print_stdout};

pub(crate) fn held_command() -> Command {
    Command::new("held")
        .about("Lists the batches that are held for an operator, and why")
        .args(flags::settings())
}

pub(crate) fn decide_command() -> Command {
    Command::new("decide")
        .about("Records an operator's decision about a held batch")
        .arg(
            Arg::new("service")
                .required(true)
                .value_parser(value_parser!(ServiceId))
                .help("Id of the service"),
        )
        .arg(
            Arg::new("batch")
                .required(true)
                .value_parser(value_parser!(HeaderId))
                .help("Id of the batch"),
        )
        .arg(
            Arg::new("decision")
                .required(true)
                .value_parser(["committed", "invalid", "absent"])
                .help(
                    "committed: the ledger has applied it; invalid: the ledger has rejected it for \
                     good; absent: the ledger does not have it and will not receive it later, so it \
                     is submitted again",
                ),
        )
        .args(flags::settings())
}

pub(crate) fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    const PAGE: usize = 500;
    let store = open_store(matches)?;
    let mut after = None;
    loop {
        let held = store.held_batches(after.as_ref(), PAGE)?;
        held.iter().for_each(print_held);
        match held.last() {
            Some(last) if held.len() == PAGE => after = Some(last.service_id.clone()),
            _ => return Ok(ExitCode::SUCCESS),
        }
    }
}

fn print_held(batch: &StoredBatch) {
    let reason = batch.held.as_ref().map_or("", |hold| hold.reason.as_str());
    let last_error = batch.last_error.as_ref().map(|error| format!(" ({error})"));
    let last_error = last_error.unwrap_or_default();
    print_stdout(format_args!("{} {} {reason}{last_error}", batch.service_id, batch.batch_id));
}

pub(crate) fn decide(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (Some(service), Some(batch)) =
        (matches.get_one::<ServiceId>("service"), matches.get_one::<HeaderId>("batch"))
    else {
        return Err(Failure::new("a service and a batch must be given"));
    };
    let decision = match matches.get_one::<String>("decision").map_or("", String::as_str) {
        "committed" => Decision::Committed,
        "invalid" => Decision::Invalid,
        _ => Decision::Absent,
    };
    match open_store(matches)?.decide(service, batch, decision)? {
        ChangeOutcome::Applied { state, .. } => {
            print_stdout(format_args!("the batch is {state}"));
            Ok(ExitCode::SUCCESS)
        }
        ChangeOutcome::Stale(stale) => Err(Failure::new(format!("nothing changed: {stale}"))),
        ChangeOutcome::NotFound => Err(Failure::new("the service has no such batch")),
    }
}

fn open_store(matches: &ArgMatches) -> Result<Store, Failure> {
    let config = flags::load(matches)?;
    Ok(Store::open(&config.database, config.store)?)
}
