//! `withdrawal`: requests, lists, shows, cancels and retries withdrawals.

mod cancel;
mod list;
mod request;
mod retry;
mod show;

use std::process::ExitCode;

use clap::Subcommand;

use crate::commands::failure::Failure;

#[cfg(feature = "evm")]
pub(crate) use retry::{FilteredArgs, retry_filtered};

/// Requests, lists, shows, cancels and retries withdrawals
#[derive(Debug, Subcommand)]
pub(crate) enum WithdrawalCommand {
    Request(request::RequestArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Cancel(cancel::CancelArgs),
    Retry(retry::RetryArgs),
}

pub(crate) fn run(command: &WithdrawalCommand) -> Result<ExitCode, Failure> {
    match command {
        WithdrawalCommand::Request(args) => request::run(args),
        WithdrawalCommand::List(args) => list::run(args),
        WithdrawalCommand::Show(args) => show::run(args),
        WithdrawalCommand::Cancel(args) => cancel::run(args),
        WithdrawalCommand::Retry(args) => retry::run(args),
    }
}
