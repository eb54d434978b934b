//! `withdrawal list`: withdrawals of a running server.

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    operator::{print_json, wants_json},
    print::print_stdout,
    remote::{self, ListFilter, Server, Table, age, field},
};

const FILTERS: [ListFilter; 4] = [
    ListFilter::new("pool", "pool", "ADDRESS", "Only withdrawals from this pool"),
    ListFilter::new("beneficiary", "beneficiary", "ADDRESS", "Only withdrawals to this account"),
    ListFilter::new("reward", "reward_id", "ID", "Only withdrawals that pay this reward"),
    ListFilter::new(
        "state",
        "state",
        "STATES",
        "Only withdrawals in these states, separated by commas: scheduled, parked, submitting, in_doubt, pending, \
         mined, held, withdrawn, failed; open and ended stand for several",
    ),
];

pub(super) fn command() -> Command {
    Command::new("list")
        .about("Lists the withdrawals of a running server, the newest first")
        .args(remote::list_flags(&FILTERS, "Maximum number of withdrawals"))
        .args(remote::flags())
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
    let listed = server.read_filtered("/withdrawals", &FILTERS, matches)?;
    print(matches, &listed.entries);
    listed.print_rest(matches);
    Ok(ExitCode::SUCCESS)
}

fn print(matches: &ArgMatches, withdrawals: &[Value]) {
    if wants_json(matches) {
        return print_json(&json!({"withdrawals": withdrawals}));
    }
    if withdrawals.is_empty() {
        return print_stdout("No withdrawal matches.");
    }
    let mut table = Table::new(["WITHDRAWAL", "AGE", "POOL", "AMOUNT", "STATE"]);
    for withdrawal in withdrawals {
        let id = field(withdrawal, "id");
        table.add([
            id.get(..12).unwrap_or(&id).to_owned(),
            age(withdrawal, "created_at"),
            field(withdrawal, "pool"),
            field(withdrawal, "amount"),
            state(withdrawal),
        ]);
    }
    table.print();
}

/// The state of a withdrawal, and why.
pub(super) fn state(withdrawal: &Value) -> String {
    let why = [field(withdrawal, "fail_reason"), field(withdrawal, "waits_for")];
    let mut words = vec![field(withdrawal, "state")];
    words.extend(why.into_iter().filter(|text| !text.is_empty()));
    words.join(": ")
}
