//! What an operator decides about batches: `hold`, `release`, `decide`, `resubmit`, `cancel`, `continue` and
//! `end-following`.

use std::process::ExitCode;

use clap::Args;
use grid_batch_core::operators::OperatorVerb;

use crate::commands::{
    arguments::ActionArgs,
    failure::Failure,
    operator::{AttemptArg, BatchesArgs, NamedBatches},
    remote,
};

#[derive(Debug, Args)]
pub(crate) struct VerbArgs {
    #[command(flatten)]
    batches: BatchesArgs,
    #[command(flatten)]
    action: ActionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResubmitArgs {
    #[command(flatten)]
    batches: BatchesArgs,
    #[command(flatten)]
    attempt: AttemptArg,
    #[command(flatten)]
    action: ActionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DecideArgs {
    #[command(flatten)]
    resubmit: ResubmitArgs,
    /// committed: the ledger has applied it; invalid: the ledger has rejected it for good, or it is not at the ledger
    /// and must not be sent; absent: the ledger does not have it and will not receive it later, so it is submitted
    /// again. After `committed` and `invalid` the next batch of the service is sent: if the ledger applies this one
    /// later, it is out of order
    #[arg(value_parser = ["committed", "invalid", "absent"])]
    decision: String,
}

/// Does this with the batches that are named.
pub(crate) fn act(args: &VerbArgs, verb: OperatorVerb) -> Result<ExitCode, Failure> {
    let named = NamedBatches::of(&args.batches, None)?;
    remote::act_on_each(&args.action, verb, &named)
}

pub(crate) fn resubmit(args: &ResubmitArgs) -> Result<ExitCode, Failure> {
    act_on_attempts(args, OperatorVerb::Resubmit)
}

pub(crate) fn decide(args: &DecideArgs) -> Result<ExitCode, Failure> {
    let verb = match args.decision.as_str() {
        "committed" => OperatorVerb::EndCommitted,
        "invalid" => OperatorVerb::EndInvalid,
        _ => OperatorVerb::Resubmit,
    };
    act_on_attempts(&args.resubmit, verb)
}

fn act_on_attempts(args: &ResubmitArgs, verb: OperatorVerb) -> Result<ExitCode, Failure> {
    let named = NamedBatches::of_attempts(&args.batches, args.attempt)?;
    remote::act_on_each(&args.action, verb, &named)
}
