//! `decide`: what an operator knows about a batch.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use grid_batch_core::{BatchState, ChangeOutcome, Decision, OperatorDecision};

use crate::commands::{
    batch_key::{BatchKey, batch_key, no_such_batch, open_store, reason, reason_flag},
    failure::Failure,
    flags,
    print::print_stdout,
};

pub(crate) fn command() -> Command {
    Command::new("decide")
        .about("Records an operator's decision about an open batch")
        .args(BatchKey::arguments())
        .arg(
            Arg::new("decision")
                .required(true)
                .value_parser(["committed", "invalid", "absent"])
                .help(
                    "committed: the ledger has applied it; invalid: the ledger has rejected it for \
                     good, or, if it is not at the ledger, it is not to be sent; absent: the ledger \
                     does not have it and will not receive it later, so it is submitted again. After \
                     `committed` and `invalid` the next batch of the service is sent: if the ledger \
                     applies this one later after all, it is applied out of order",
                ),
        )
        .arg(
            Arg::new("attempt")
                .long("attempt")
                .value_name("NUMBER")
                .required(true)
                .value_parser(value_parser!(u32))
                .help(
                    "Number of the attempt that the decision is about, as `show` and `held` print \
                     it, 0 for a batch that was never tried; nothing changes if the batch is at \
                     another one by now",
                ),
        )
        .arg(reason_flag())
        .args(flags::settings())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let BatchKey { service, batch } = batch_key(matches)?;
    let attempt = matches.get_one::<u32>("attempt").copied();
    let attempt = attempt.ok_or_else(|| Failure::new("an attempt must be given"))?;
    let decision = match matches.get_one::<String>("decision").map_or("", String::as_str) {
        "committed" => Decision::Committed,
        "invalid" => Decision::Invalid,
        _ => Decision::Absent,
    };
    let store = open_store(matches)?;
    let before = store.details(service, batch)?.ok_or_else(no_such_batch)?.batch.progress;
    let decided = OperatorDecision { decision, reason: reason(matches).map(str::to_owned) };
    match store.decide(service, batch, attempt, decided)? {
        ChangeOutcome::Applied { state, .. } => {
            print_stdout(format_args!("after attempt {attempt}, the batch is {state}"));
            let may_arrive = before.state.awaits_poller() || before.earlier_may_arrive;
            if state == BatchState::Invalid && may_arrive {
                print_stdout(
                    "The ledger may have had this batch. If it applies it after all, later batches\n\
                     of the service may have been applied before it: the log then reports an error.",
                );
            }
            Ok(ExitCode::SUCCESS)
        }
        ChangeOutcome::Stale(stale) => Err(Failure::new(format!("nothing changed: {stale}"))),
        ChangeOutcome::NotFound => Err(no_such_batch()),
    }
}
