//! `transaction cancel` and `transaction retry`.

use std::process::ExitCode;

use clap::Args;
use grid_batch_core::queries::ItemIdPrefix;

use crate::commands::{
    arguments::{Asked, RemoteArgs},
    failure::Failure,
    remote::{Server, TRANSACTIONS},
};

// The commands have help of their own.
#[derive(Debug, Args)]
pub(crate) struct ActArgs {
    /// Ids of transactions, or at least their first 8 digits
    #[arg(required = true)]
    transaction: Vec<ItemIdPrefix>,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(super) fn run(args: &ActArgs, action: &str) -> Result<ExitCode, Failure> {
    let ActArgs { transaction, asked, remote } = args;
    let server = Server::of(&remote.server)?;
    Ok(TRANSACTIONS.act_on_each(transaction, action, &server, asked, &remote.output))
}
