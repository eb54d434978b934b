//! `hold` and `release`: an operator keeps a batch back, or lets it continue.

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use grid_batch_core::operators::OperatorVerb;

use crate::commands::{
    failure::Failure,
    operator::{NamedBatches, batch_arguments},
    remote,
};

pub(crate) fn hold_command() -> Command {
    Command::new("hold")
        .about(
            "Holds open batches: they are not sent, or not sent again, until they are released or decided",
        )
        .long_about(
            "Holds open batches: they are not sent, or not sent again, until they are released or decided. Later \
             batches of the service wait. A batch that is at the ledger is followed, and ends when the ledger \
             reports a final status. A batch that is being sent is not stopped; one that was taken and is not \
             sent yet goes back to the queue. A batch that waits behind another one is held when its turn comes.",
        )
        .args(batch_arguments())
        .args(remote::action_flags())
}

pub(crate) fn release_command() -> Command {
    Command::new("release")
        .about(
            "Ends the holds of batches: they continue by the ordinary rules, which may hold them again",
        )
        .args(batch_arguments())
        .args(remote::action_flags())
}

pub(crate) fn hold(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    remote::act_on_each(matches, OperatorVerb::Hold, &NamedBatches::of(matches)?)
}

pub(crate) fn release(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    remote::act_on_each(matches, OperatorVerb::Release, &NamedBatches::of(matches)?)
}
