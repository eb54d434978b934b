//! `withdrawal show`: everything that is stored about withdrawals.

use std::process::ExitCode;

use clap::Args;
use grid_batch_core::queries::ItemIdPrefix;
use serde_json::Value;

use crate::commands::{
    arguments::RemoteArgs,
    failure::Failure,
    remote::{Server, WITHDRAWALS, field, print_each, print_line, print_time},
};

/// Shows what is stored about withdrawals: their state, what they wait for, and their transactions
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Ids of withdrawals, or at least their first 8 digits
    #[arg(required = true)]
    withdrawal: Vec<ItemIdPrefix>,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(super) fn run(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let server = Server::of(&args.remote.server)?;
    let withdrawals = args.withdrawal.iter().map(|name| WITHDRAWALS.read(&server, name));
    let withdrawals = withdrawals.collect::<Result<Vec<_>, _>>()?;
    let print_all = || print_each(&withdrawals, print);
    Ok(args.remote.output.show_list("withdrawals", &withdrawals, print_all))
}

fn print(withdrawal: &Value) {
    for (name, label) in [
        ("id", "withdrawal"),
        ("pool", "pool"),
        ("amount", "amount"),
        ("beneficiary", "to"),
        ("gas_admin", "gas admin"),
        ("reward_id", "reward"),
        ("state", "state"),
        ("waits_for", "waits for"),
        ("fail_reason", "failed"),
        ("withdrawal_id", "pool's id"),
        ("attempts", "attempts"),
    ] {
        print_line(label, &field(withdrawal, name));
    }
    for (name, label) in
        [("created_at", "scheduled"), ("cancelled_at", "cancelled"), ("ended_at", "ended")]
    {
        print_time(label, withdrawal, name);
    }
    WITHDRAWALS.print_signed(withdrawal);
}
