//! `gas-admins`: the accounts that pay for withdrawals, of a running server or of a configuration.

use std::process::ExitCode;

use grid_batch_service::gas_admin_addresses;
use grid_batch_withdrawals::in_unit;
use serde_json::{Value, json};

use crate::commands::{
    arguments::ReadArgs,
    failure::Failure,
    print::print_stdout,
    remote::{Server, Source, Table, entries, field},
};

pub(crate) fn run(args: &ReadArgs) -> Result<ExitCode, Failure> {
    match Source::of(&args.source) {
        Source::Server => list_of_server(args),
        Source::Database => list_of_configuration(args),
    }
}

fn list_of_configuration(args: &ReadArgs) -> Result<ExitCode, Failure> {
    let addresses = gas_admin_addresses(&args.source.settings.load()?)?;
    let gas_admin = |(name, address): &(String, String)| json!({"name": name, "address": address});
    let gas_admins: Vec<Value> = addresses.iter().map(gas_admin).collect();
    Ok(args.output.show_list("gas_admins", &gas_admins, || {
        for (name, address) in &addresses {
            print_stdout(format_args!("{name} {address}"));
        }
    }))
}

fn list_of_server(args: &ReadArgs) -> Result<ExitCode, Failure> {
    let server = Server::of(&args.source.server)?;
    let list = server.client.get("/v1/gas-admins", &[])?;
    let gas_admins = entries(&list, "data");
    Ok(args.output.show_list("gas_admins", gas_admins, || print(gas_admins)))
}

fn print(gas_admins: &[Value]) {
    let mut table =
        Table::new(["NAME", "ETHER", "GWEI", "CAP", "OPEN", "PARKED", "HELD", "ADDRESS", "ERROR"]);
    for gas_admin in gas_admins {
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
}

/// The error of a value that cannot be read, or else the last error of the oldest withdrawal.
fn error(readings: &[&Value], queue: &Value) -> String {
    let unread = readings.iter().map(|reading| field(reading, "error"));
    unread.chain([field(queue, "last_error")]).find(|error| !error.is_empty()).unwrap_or_default()
}
