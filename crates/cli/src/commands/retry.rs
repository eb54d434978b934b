//! `retry`: ends the delays of batches that the ledger did not accept.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use grid_batch_core::{OperatorTarget, OperatorVerb, ServiceId};
use grid_batch_store::EndedDelays;

use crate::commands::{
    failure::Failure,
    flags,
    operator::{Database, dry_run_flag, is_dry_run, operator_action, reason_flag},
    print::print_stdout,
};

pub(crate) fn command() -> Command {
    Command::new("retry")
        .about("Ends the delays of batches that the ledger did not accept: they are sent again now")
        .long_about(
            "Ends the delays of batches that the ledger did not accept, also one that the ledger asked \
             for, and the holds of batches that it refused again and again: they are sent again now. A \
             running server finds them within queue.poll_interval. A batch that an operator holds stays \
             held: use `release`. Services of which another transaction keeps a row locked are left out, \
             and the exit code is 1: run the command again.",
        )
        .arg(
            Arg::new("service")
                .value_parser(value_parser!(ServiceId))
                .num_args(1..)
                .required_unless_present("all")
                .conflicts_with("all")
                .help("Ids of services"),
        )
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("All services"))
        .arg(reason_flag())
        .arg(dry_run_flag())
        .args(flags::settings())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let store = Database::to_write(matches)?.store;
    let services = matches.get_many::<ServiceId>("service").into_iter().flatten();
    let mut targets: Vec<_> = services.cloned().map(OperatorTarget::Service).collect();
    if targets.is_empty() {
        targets.push(OperatorTarget::AllServices);
    }
    let mut ended = EndedDelays::default();
    for target in targets {
        let action = operator_action(matches, OperatorVerb::Retry, target);
        let EndedDelays { batches, locked } = store.retry_delayed(&action)?;
        ended.batches.extend(batches);
        ended.locked.extend(locked);
    }
    for (service, batch) in &ended.batches {
        print_stdout(format_args!("{service} {batch}"));
    }
    match (ended.batches.len(), ended.locked.len()) {
        (count, _) if is_dry_run(matches) => {
            print_stdout(format_args!("nothing changed: the delays of {count} batches would end"));
        }
        (0, 0) => print_stdout(format_args!("nothing is delayed")),
        (count, _) => print_stdout(format_args!("the delays of {count} batches are ended")),
    }
    match ended.locked.as_slice() {
        [] => Ok(ExitCode::SUCCESS),
        locked @ [first, ..] => Err(Failure::new(format!(
            "{} services are locked by another transaction, such as {first}; run the command again",
            locked.len()
        ))),
    }
}
