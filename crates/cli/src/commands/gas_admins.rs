//! `gas-admins`: the accounts that pay for withdrawals, of a running server or of a configuration.

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use grid_batch_service::gas_admin_addresses;
use grid_batch_withdrawals::in_unit;
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    flags,
    operator::{json_flag, print_json, wants_json},
    print::print_stdout,
    remote::{self, Server, Source, Table, field},
};

pub(crate) fn command() -> Command {
    Command::new("gas-admins")
        .about("Lists the gas admins with their balances and queues; with a configuration, only their addresses")
        .long_about(
            "Lists the gas admins of a running server, with their balances, the gas price and their queues. With \
             a configuration, lists their names and addresses without a server, and checks the keys; remote \
             signers are not asked.",
        )
        .arg(json_flag())
        .args(remote::flags_of_both())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match Source::of(matches) {
        Source::Server => list_of_server(matches),
        Source::Database => list_of_configuration(matches),
    }
}

fn list_of_configuration(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let addresses = gas_admin_addresses(&flags::load(matches)?)?;
    if wants_json(matches) {
        let gas_admin = |(name, address)| json!({"name": name, "address": address});
        let gas_admins: Vec<_> = addresses.into_iter().map(gas_admin).collect();
        print_json(&json!({ "gas_admins": gas_admins }));
        return Ok(ExitCode::SUCCESS);
    }
    for (name, address) in addresses {
        print_stdout(format_args!("{name} {address}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn list_of_server(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
    let list = server.client.get("/v1/gas-admins", &[])?;
    let gas_admins = list["data"].as_array().cloned().unwrap_or_default();
    if wants_json(matches) {
        print_json(&json!({ "gas_admins": gas_admins }));
        return Ok(ExitCode::SUCCESS);
    }
    let mut table =
        Table::new(["NAME", "ETHER", "GWEI", "CAP", "OPEN", "PARKED", "HELD", "ADDRESS", "ERROR"]);
    for gas_admin in &gas_admins {
        let (balance, price) = (&gas_admin["balance"], &gas_admin["gas_price_gwei"]);
        let queue = &gas_admin["queue"];
        table.add([
            field(gas_admin, "name"),
            balance["value"].as_str().map(|wei| in_unit(wei, 18)).unwrap_or_default(),
            field(price, "value"),
            field(gas_admin, "maximum_gas_price_gwei"),
            field(queue, "open"),
            field(queue, "parked"),
            field(queue, "held"),
            field(gas_admin, "address"),
            error(&[balance, price], queue),
        ]);
    }
    table.print();
    Ok(ExitCode::SUCCESS)
}

/// The error of a value that cannot be read, or else the last error of the oldest withdrawal.
fn error(readings: &[&Value], queue: &Value) -> String {
    let unread = readings.iter().map(|reading| field(reading, "error"));
    unread.chain([field(queue, "last_error")]).find(|error| !error.is_empty()).unwrap_or_default()
}
