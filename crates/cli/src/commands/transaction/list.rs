//! `transaction list`: transactions of a running server.

use std::process::ExitCode;

use clap::{Args, value_parser};
use grid_batch_client::given;
use grid_batch_withdrawals::in_unit;
use serde_json::Value;

use crate::commands::{
    arguments::RemoteArgs,
    failure::Failure,
    remote::{TRANSACTIONS, Table, age, field, state_and_reason},
};

/// Lists the transactions of a running server, the newest first
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only transactions of this gas admin: its name, its address or its service
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// Only transactions to this address
    #[arg(long, value_name = "ADDRESS")]
    to: Option<String>,
    #[arg(
        long,
        value_name = "STATES",
        help = "Only transactions in these states, separated by commas: scheduled, parked, submitting, in_doubt, \
                pending, mined, held, executed, failed; open and ended stand for several"
    )]
    state: Option<String>,
    /// Maximum number of transactions
    #[arg(long, value_name = "NUMBER", default_value = "20", value_parser = value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(super) fn run(args: &ListArgs) -> Result<ExitCode, Failure> {
    let filters = given([
        ("account", args.account.as_deref()),
        ("to", args.to.as_deref()),
        ("state", args.state.as_deref()),
    ]);
    TRANSACTIONS.list(&args.remote, &filters, args.limit, print)
}

fn print(transactions: &[Value]) {
    let mut table = Table::new(["TRANSACTION", "AGE", "TO", "ETHER", "STATE"]);
    for transaction in transactions {
        let id = field(transaction, "id");
        table.add([
            id.get(..12).unwrap_or(&id).to_owned(),
            age(transaction, "created_at"),
            short_address(&field(transaction, "to")),
            in_unit(field(transaction, "value"), 18),
            state_and_reason(transaction),
        ]);
    }
    table.print();
}

/// The ends of an address, so that the state has room beside it.
fn short_address(address: &str) -> String {
    if address.is_empty() {
        return "new contract".to_owned();
    }
    match (address.get(..8), address.get(38..)) {
        (Some(first), Some(last)) => format!("{first}…{last}"),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_shortened_in_its_middle() {
        let address = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
        assert_eq!(short_address(address), "0x5FbDB2…0aa3");
        assert_eq!(short_address("0xa"), "0xa");
        assert_eq!(short_address(""), "new contract");
    }
}
