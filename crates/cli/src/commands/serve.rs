use std::process::ExitCode;

use clap::{ArgMatches, Command};
use grid_batch_service::{LedgerKind, Server};
use log::info;

use crate::commands::{failure::Failure, flags, logging, print::print_stdout, signals};

pub(crate) fn command() -> Command {
    Command::new("serve")
        .about("Accepts batches and submits them to the ledger, until SIGINT or SIGTERM")
        .args(flags::settings())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let config = flags::load(matches)?;
    logging::start(&config.log);
    let shutdown = signals::shutdown_receiver()?;
    let server = Server::start(&config)?;
    let content = match config.ledger.kind {
        Some(LedgerKind::Evm) => "withdrawals",
        _ => "batches",
    };
    print_stdout(format_args!("Accepting {content} at {}/{content}", server.url()));
    shutdown.recv()?;
    server.stop()?;
    info!("server stopped");
    Ok(ExitCode::SUCCESS)
}
