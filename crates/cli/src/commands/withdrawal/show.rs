//! `withdrawal show`: everything that is stored about withdrawals.

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use serde_json::{Value, json};

use super::name::{named, read, withdrawals_argument};
use crate::commands::{
    failure::Failure,
    operator::{print_json, wants_json},
    print::print_stdout,
    remote::{self, Server, field, print_line, print_time},
};

pub(super) fn command() -> Command {
    Command::new("show")
        .about("Shows what is stored about withdrawals: their state, what they wait for, and their transactions")
        .arg(withdrawals_argument().required(true))
        .args(remote::flags())
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
    let withdrawals = named(matches).map(|name| read(&server, name));
    let withdrawals = withdrawals.collect::<Result<Vec<_>, _>>()?;
    if wants_json(matches) {
        print_json(&json!({ "withdrawals": withdrawals }));
        return Ok(ExitCode::SUCCESS);
    }
    for (number, withdrawal) in withdrawals.iter().enumerate() {
        if number > 0 {
            print_stdout("");
        }
        print(withdrawal);
    }
    Ok(ExitCode::SUCCESS)
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
    for transaction in withdrawal["transactions"].as_array().into_iter().flatten() {
        print_line("sent as", &transaction_text(transaction));
    }
}

fn transaction_text(transaction: &Value) -> String {
    let nonce = field(transaction, "nonce");
    let fee = field(transaction, "max_fee_gwei");
    let mut text =
        format!("{} with the nonce {nonce}, at most {fee} gwei", field(transaction, "hash"));
    if transaction["cancels"].as_bool().unwrap_or(false) {
        text.push_str("; it cancels the withdrawal");
    }
    let error = field(transaction, "last_error");
    if !error.is_empty() {
        text.push_str(&format!("; {error}"));
    }
    text
}
