use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use grid_batch_core::{ChangeOutcome, Decision, HeaderId, ServiceId, StoredBatch};
use grid_batch_store::Store;

use crate::commands::{failure::Failure, flags, output::say};

pub(crate) fn held_command() -> Command {
    Command::new("held")
        .about("Lists the batches that wait for a person, and why")
        .args(flags::settings())
}

pub(crate) fn decide_command() -> Command {
    Command::new("decide")
        .about("Says what became of a batch that waits for a person")
        .arg(
            Arg::new("service")
                .required(true)
                .value_parser(value_parser!(ServiceId))
                .help("The service"),
        )
        .arg(
            Arg::new("batch")
                .required(true)
                .value_parser(value_parser!(HeaderId))
                .help("The batch's id"),
        )
        .arg(
            Arg::new("decision")
                .required(true)
                .value_parser(["committed", "invalid", "absent"])
                .help(
                    "committed: the ledger has applied it; invalid: it has refused it for good; \
                 absent: it certainly does not have it, and will not find it later, so that it is \
                 sent again",
                ),
        )
        .args(flags::settings())
}

pub(crate) fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    const PAGE: usize = 500;
    let store = open(matches)?;
    let mut after = None;
    loop {
        let held = store.held_batches(after.as_ref(), PAGE)?;
        held.iter().for_each(show);
        match held.last() {
            Some(last) if held.len() == PAGE => after = Some(last.service_id.clone()),
            _ => return Ok(ExitCode::SUCCESS),
        }
    }
}

fn show(batch: &StoredBatch) {
    let reason = batch.held.as_ref().map_or("", |held| held.reason.as_str());
    say(format_args!("{} {} {reason}", batch.service_id, batch.batch_id));
}

pub(crate) fn decide(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (Some(service), Some(batch)) =
        (matches.get_one::<ServiceId>("service"), matches.get_one::<HeaderId>("batch"))
    else {
        return Err(Failure::new("a service and a batch must be named"));
    };
    let decision = match matches.get_one::<String>("decision").map_or("", String::as_str) {
        "committed" => Decision::Committed,
        "invalid" => Decision::Invalid,
        _ => Decision::Absent,
    };
    match open(matches)?.decide(service, batch, decision)? {
        ChangeOutcome::Applied { state, .. } => {
            say(format_args!("the batch is {state}"));
            Ok(ExitCode::SUCCESS)
        }
        ChangeOutcome::Stale(stale) => Err(Failure::new(format!("nothing changed: {stale}"))),
        ChangeOutcome::NotFound => Err(Failure::new("the service has no such batch")),
    }
}

fn open(matches: &ArgMatches) -> Result<Store, Failure> {
    let config = flags::load(matches)?;
    Ok(Store::open(&config.database, config.store)?)
}
