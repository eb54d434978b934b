//! `transaction show`: everything that is stored about transactions.

use std::process::ExitCode;

use clap::Args;
use grid_batch_core::queries::ItemIdPrefix;
use grid_batch_withdrawals::in_unit;
use serde_json::Value;

use super::result::print_result;
use crate::commands::{
    arguments::RemoteArgs,
    failure::Failure,
    remote::{Server, TRANSACTIONS, field, print_each, print_line, print_time},
};

/// Shows what is stored about transactions: their state, what they wait for, and their results
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Ids of transactions, or at least their first 8 digits
    #[arg(required = true)]
    transaction: Vec<ItemIdPrefix>,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(super) fn run(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let server = Server::of(&args.remote.server)?;
    let transactions = args.transaction.iter().map(|name| TRANSACTIONS.read(&server, name));
    let transactions = transactions.collect::<Result<Vec<_>, _>>()?;
    let print_all = || print_each(&transactions, print);
    Ok(args.remote.output.show_list(&TRANSACTIONS.list_name(), &transactions, print_all))
}

fn print(transaction: &Value) {
    for (name, label) in [("id", "id"), ("account", "account"), ("to", "to"), ("label", "label")] {
        print_line(label, &field(transaction, name));
    }
    let value = field(transaction, "value");
    print_line("value", &format!("{value} wei, {} ether", in_unit(&value, 18)));
    print_line("data", &data_text(&field(transaction, "data")));
    for (name, label) in [
        ("state", "state"),
        ("waits_for", "waits for"),
        ("fail_reason", "failed"),
        ("gas_limit", "gas limit"),
        ("deadline", "deadline"),
        ("idempotency_key", "key"),
        ("attempts", "attempts"),
    ] {
        print_line(label, &field(transaction, name));
    }
    let price = field(transaction, "maximum_gas_price_gwei");
    if !price.is_empty() {
        print_line("gas price", &format!("at most {price} gwei"));
    }
    for (name, label) in
        [("created_at", "scheduled"), ("cancelled_at", "cancelled"), ("ended_at", "ended")]
    {
        print_time(label, transaction, name);
    }
    TRANSACTIONS.print_signed(transaction);
    print_result(&transaction["result"]);
}

/// The beginning of the data, and how long it is; `--json` prints all of it.
fn data_text(data: &str) -> String {
    const SHOWN: usize = 64;
    match data.get(..SHOWN) {
        Some(first) if data.len() > SHOWN => {
            format!("{first}… ({} bytes)", (data.len() - 2) / 2)
        }
        _ if data == "0x" => String::new(),
        _ => data.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_data_is_cut() {
        assert_eq!(data_text("0x"), "");
        assert_eq!(data_text("0xa9059cbb"), "0xa9059cbb");
        let shown = data_text(&format!("0x{}", "ab".repeat(68)));
        assert!(shown.starts_with("0xabab") && shown.ends_with("ab… (68 bytes)"), "{shown}");
        assert!(shown.len() < 80, "{shown}");
    }
}
