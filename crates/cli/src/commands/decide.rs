//! `decide`, `resubmit` and `cancel`: an operator's decisions about batches.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};
use grid_batch_core::operators::OperatorVerb;

use crate::commands::{
    failure::Failure,
    operator::{NamedBatches, attempt_flag, batch_arguments},
    remote,
};

pub(crate) fn command() -> Command {
    Command::new("decide")
        .about("Records an operator's decision about open batches")
        .args(batch_arguments())
        .arg(
            Arg::new("decision")
                .required(true)
                .value_parser(["committed", "invalid", "absent"])
                .help(
                    "committed: the ledger has applied it; invalid: the ledger has rejected it for good, or it is \
                     not at the ledger and must not be sent; absent: the ledger does not have it and will not \
                     receive it later, so it is submitted again. After `committed` and `invalid` the next batch \
                     of the service is sent: if the ledger applies this one later, it is out of order",
                ),
        )
        .arg(attempt_flag())
        .args(remote::action_flags())
}

pub(crate) fn resubmit_command() -> Command {
    Command::new("resubmit")
        .about("Sends batches again, because the ledger does not have them; the same as `decide ... absent`")
        .args(batch_arguments())
        .arg(attempt_flag())
        .args(remote::action_flags())
}

pub(crate) fn cancel_command() -> Command {
    Command::new("cancel")
        .about("Ends batches as invalid without sending them; refused for a batch that may be at the ledger")
        .args(batch_arguments())
        .args(remote::action_flags())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let verb = match matches.get_one::<String>("decision").map_or("", String::as_str) {
        "committed" => OperatorVerb::EndCommitted,
        "invalid" => OperatorVerb::EndInvalid,
        _ => OperatorVerb::Resubmit,
    };
    act(matches, verb)
}

pub(crate) fn resubmit(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    act(matches, OperatorVerb::Resubmit)
}

pub(crate) fn cancel(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    act(matches, OperatorVerb::Cancel)
}

fn act(matches: &ArgMatches, verb: OperatorVerb) -> Result<ExitCode, Failure> {
    let named = if verb.decides_attempt() {
        NamedBatches::of_attempts(matches)?
    } else {
        NamedBatches::of(matches)?
    };
    remote::act_on_each(matches, verb, &named)
}
