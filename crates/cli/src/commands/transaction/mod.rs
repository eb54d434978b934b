//! `transaction`: sends, lists, shows, cancels and retries transactions of an EVM account.

mod act;
mod argument;
mod list;
mod result;
mod send;
mod show;

use std::process::ExitCode;

use clap::Subcommand;

use crate::commands::failure::Failure;

/// Sends, lists, shows, cancels and retries transactions of a gas admin, at a running server
#[derive(Debug, Subcommand)]
pub(crate) enum TransactionCommand {
    Send(send::SendArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    /// Cancels transactions, if that is still possible
    ///
    /// One that is not signed fails when its turn comes. For one that was sent, an empty transaction is sent with the
    /// same nonce and a higher fee; the one that is mined first decides. A cancelled transaction has failed and can be
    /// retried.
    Cancel(act::ActArgs),
    /// Raises the fees of transactions that were sent and are not mined
    ///
    /// By an eighth or more, unless that exceeds the maximum.
    SpeedUp(act::ActArgs),
    /// Schedules failed transactions again, behind those of the same gas admin that wait
    Retry(act::ActArgs),
}

pub(crate) fn run(command: &TransactionCommand) -> Result<ExitCode, Failure> {
    match command {
        TransactionCommand::Send(args) => send::run(args),
        TransactionCommand::List(args) => list::run(args),
        TransactionCommand::Show(args) => show::run(args),
        TransactionCommand::Cancel(args) => act::run(args, "cancel"),
        TransactionCommand::SpeedUp(args) => act::run(args, "speed-up"),
        TransactionCommand::Retry(args) => act::run(args, "retry"),
    }
}
