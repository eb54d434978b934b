//! `decide`: what an operator knows about batches.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use grid_batch_core::{BatchState, OperatorVerb};

use crate::commands::{
    exit::Exit,
    failure::Failure,
    flags,
    operator::{
        BatchName, Changed, Target, act_on_each, batch_arguments, dry_run_flag, json_flag,
        reason_flag,
    },
    print::print_stderr,
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
                .value_parser(value_parser!(u32))
                .help(
                    "Number of the attempt that the decision is about, as `show` and `held` print \
                     it, 0 for a batch that was never tried; nothing changes if the batch is at \
                     another one by now. For batches at different attempts, name each as ID@ATTEMPT",
                ),
        )
        .arg(reason_flag())
        .arg(dry_run_flag())
        .arg(json_flag())
        .args(flags::settings())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let common = matches.get_one::<u32>("attempt").copied();
    let mut names = matches.get_many::<BatchName>("batch").into_iter().flatten();
    if let Some(name) = names.find(|name| name.attempt.or(common).is_none()) {
        print_stderr(format_args!(
            "grid-batch: the attempt that the decision about {name:.32} is for is missing: give \
             --attempt <NUMBER>, or the batch as ID@ATTEMPT"
        ));
        return Ok(Exit::WrongArguments.into());
    }
    let verb = match matches.get_one::<String>("decision").map_or("", String::as_str) {
        "committed" => OperatorVerb::EndCommitted,
        "invalid" => OperatorVerb::EndInvalid,
        _ => OperatorVerb::Resubmit,
    };
    let attempt_of = |target: &Target| target.attempt.or(common).unwrap_or_default();
    act_on_each(
        matches,
        verb,
        |target| Some(attempt_of(target)),
        |changed| text(changed, attempt_of(changed.target)),
    )
}

fn text(Changed { target, state }: &Changed<'_>, attempt: u32) -> String {
    let before = target.batch.progress;
    let may_arrive = before.state.awaits_poller() || before.earlier_may_arrive;
    let warning = match *state == BatchState::Invalid && may_arrive {
        true => {
            ". The ledger may have had this batch. If it applies it after all, later batches of the \
             service may have been applied before it: the log then reports an error."
        }
        false => "",
    };
    format!("after attempt {attempt}, the batch is {state}{warning}")
}
