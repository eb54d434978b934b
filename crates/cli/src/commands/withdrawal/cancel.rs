//! `withdrawal cancel`: requests that withdrawals be cancelled.

use std::process::ExitCode;

use clap::Args;
use grid_batch_core::queries::ItemIdPrefix;

use crate::commands::{
    arguments::ActionArgs,
    failure::Failure,
    remote::{self, Server, WITHDRAWALS},
};

/// Cancels withdrawals, if that is still possible
///
/// One that is not signed fails when its turn comes. For one that was sent, a transaction that pays nothing is sent with
/// the same nonce and a higher fee; the transaction that is mined first decides. A cancelled withdrawal has failed and
/// can be retried.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Ids of withdrawals, or at least their first 8 digits
    #[arg(required = true)]
    withdrawal: Vec<ItemIdPrefix>,
    #[command(flatten)]
    action: ActionArgs,
}

pub(super) fn run(CancelArgs { withdrawal, action }: &CancelArgs) -> Result<ExitCode, Failure> {
    let ActionArgs { asked, output, source } = action;
    remote::check_withdrawals(source)?;
    let server = Server::to_act(source)?;
    Ok(WITHDRAWALS.act_on_each(withdrawal, "cancel", &server, asked, output))
}
