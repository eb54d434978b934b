use std::process::ExitCode;

use clap::{ArgMatches, Command};
use grid_batch_service::{LedgerKind, Service};
use log::info;

use crate::commands::{failure::Failure, flags, logging, output::say, signals};

pub(crate) fn command() -> Command {
    Command::new("serve")
        .about("Takes batches and brings them to the ledger, until it is told to end")
        .args(flags::settings())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let config = flags::load(matches)?;
    logging::start(&config.log);
    let told = signals::until_told_to_end()?;
    let service = Service::start(&config)?;
    let (what, path) = match config.ledger.kind {
        Some(LedgerKind::Evm) => ("Withdrawals", "withdrawals"),
        _ => ("Batches", "batches"),
    };
    say(format_args!("{what} are taken at {}/{path}", service.url()));
    told.recv()?;
    service.stop()?;
    info!("ended");
    Ok(ExitCode::SUCCESS)
}
