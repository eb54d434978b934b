//! `held` and `decide`: batches that wait for an operator's decision.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use grid_batch_core::{ChangeOutcome, Decision, HeaderId, ServiceId, StoredBatch};
use grid_batch_store::Store;

use crate::commands::{failure::Failure, flags, print::print_stdout};

pub(crate) fn held_command() -> Command {
    Command::new("held")
        .about(
            "Lists the batches that are held for an operator: service, batch, attempt and the reason",
        )
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
        .arg(
            Arg::new("attempt")
                .long("attempt")
                .value_name("NUMBER")
                .required(true)
                .value_parser(value_parser!(u32))
                .help(
                    "Number of the attempt that the decision is about, as `held` prints it; nothing \
                     changes if the batch is at another one by now",
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
    let StoredBatch { service_id, batch_id, progress, .. } = batch;
    // A reason may end with the last error already.
    let error = batch.last_error.as_deref().filter(|error| !reason.contains(*error));
    let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
    print_stdout(format_args!("{service_id} {batch_id} {} {reason}{error}", progress.attempts));
}

pub(crate) fn decide(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (Some(service), Some(batch), Some(attempt)) = (
        matches.get_one::<ServiceId>("service"),
        matches.get_one::<HeaderId>("batch"),
        matches.get_one::<u32>("attempt").copied(),
    ) else {
        return Err(Failure::new("a service, a batch and an attempt must be given"));
    };
    let decision = match matches.get_one::<String>("decision").map_or("", String::as_str) {
        "committed" => Decision::Committed,
        "invalid" => Decision::Invalid,
        _ => Decision::Absent,
    };
    let store = open_store(matches)?;
    match store.decide(service, batch, attempt, decision)? {
        ChangeOutcome::Applied { state, .. } => {
            print_stdout(format_args!("after attempt {attempt}, the batch is {state}"));
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
