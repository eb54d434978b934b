//! `hold` and `release`: an operator keeps a batch back, or lets it continue.

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use grid_batch_core::{BatchState, OperatorVerb};

use crate::commands::{
    failure::Failure,
    operator::{
        Changed, NamedBatches, act_on_each, batch_arguments, dry_run_flag, json_flag, reason_flag,
    },
    remote::{self, Source},
};

pub(crate) fn hold_command() -> Command {
    Command::new("hold")
        .about(
            "Holds open batches: they are not sent, or not sent again, before they are released or \
             decided",
        )
        .long_about(
            "Holds open batches: they are not sent, or not sent again, before they are released or \
             decided. Later batches of the service wait. A batch that is at the ledger is followed, and \
             ends when the ledger reports a final status. A batch that is being sent is not stopped; one that \
             was taken and is not sent yet goes back to the queue. \
             A batch that waits behind another one is held when its turn comes.",
        )
        .args(batch_arguments())
        .arg(reason_flag().required(true))
        .arg(dry_run_flag())
        .arg(json_flag())
        .args(remote::flags_of_both())
}

pub(crate) fn release_command() -> Command {
    Command::new("release")
        .about(
            "Ends the holds of batches, so that they continue by the ordinary rules, which may hold them \
             again",
        )
        .args(batch_arguments())
        .arg(reason_flag())
        .arg(dry_run_flag())
        .arg(json_flag())
        .args(remote::flags_of_both())
}

pub(crate) fn hold(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let verb = OperatorVerb::Hold;
    match Source::of(matches) {
        Source::Server => remote::act_on_each(matches, verb, &NamedBatches::of(matches)?),
        Source::Database => act_on_each(matches, verb, |Changed { state, .. }| {
            let consequence = match state {
                BatchState::Submitting => {
                    "it goes back within a second, unless it is being sent already"
                }
                state if state.awaits_queuer() => "it is not sent before it is released or decided",
                _ => "it is followed, and not sent again before it is released or decided",
            };
            format!("the batch is {state} and held: {consequence}")
        }),
    }
}

pub(crate) fn release(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let verb = OperatorVerb::Release;
    match Source::of(matches) {
        Source::Server => remote::act_on_each(matches, verb, &NamedBatches::of(matches)?),
        Source::Database => act_on_each(matches, verb, |Changed { state, .. }| {
            format!("the batch is {state} and not held any more")
        }),
    }
}
