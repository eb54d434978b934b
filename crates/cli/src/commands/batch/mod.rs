//! `batch`: makes signed batches, without an SDK of the ledger.

mod description;
mod intkey;
mod make;

use std::process::ExitCode;

use clap::Subcommand;

use crate::commands::failure::Failure;

/// Makes signed batches
#[derive(Debug, Subcommand)]
pub(crate) enum BatchCommand {
    Make(make::MakeArgs),
}

pub(crate) fn run(BatchCommand::Make(args): &BatchCommand) -> Result<ExitCode, Failure> {
    make::run(args)
}
