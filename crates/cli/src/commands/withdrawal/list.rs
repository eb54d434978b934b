//! `withdrawal list`: withdrawals of a running server.

use std::process::ExitCode;

use clap::{Args, value_parser};
use grid_batch_client::given;
use serde_json::Value;

use crate::commands::{
    arguments::RemoteArgs,
    failure::Failure,
    remote::{Table, WITHDRAWALS, age, field, state_and_reason},
};

/// Lists the withdrawals of a running server, the newest first
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only withdrawals from this pool
    #[arg(long, value_name = "ADDRESS")]
    pool: Option<String>,
    /// Only withdrawals to this account
    #[arg(long, value_name = "ADDRESS")]
    beneficiary: Option<String>,
    /// Only withdrawals that pay this reward
    #[arg(long, value_name = "ID")]
    reward: Option<String>,
    #[arg(
        long,
        value_name = "STATES",
        help = "Only withdrawals in these states, separated by commas: scheduled, parked, submitting, in_doubt, \
                pending, mined, held, withdrawn, failed; open and ended stand for several"
    )]
    state: Option<String>,
    /// Maximum number of withdrawals
    #[arg(long, value_name = "NUMBER", default_value = "20", value_parser = value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(super) fn run(args: &ListArgs) -> Result<ExitCode, Failure> {
    let filters = given([
        ("pool", args.pool.as_deref()),
        ("beneficiary", args.beneficiary.as_deref()),
        ("reward_id", args.reward.as_deref()),
        ("state", args.state.as_deref()),
    ]);
    WITHDRAWALS.list(&args.remote, &filters, args.limit, print)
}

fn print(withdrawals: &[Value]) {
    let mut table = Table::new(["WITHDRAWAL", "AGE", "POOL", "AMOUNT", "STATE"]);
    for withdrawal in withdrawals {
        let id = field(withdrawal, "id");
        table.add([
            id.get(..12).unwrap_or(&id).to_owned(),
            age(withdrawal, "created_at"),
            field(withdrawal, "pool"),
            field(withdrawal, "amount"),
            state_and_reason(withdrawal),
        ]);
    }
    table.print();
}
