mod liveness;
mod service_manager;

use std::{process::ExitCode, sync::Arc};

use clap::Args;
use grid_batch_service::{Config, ListenAddress, Server};
use log::info;

use crate::commands::{
    failure::Failure,
    flags::{self, All, SettingFlags},
    logging,
    print::print_stdout,
    signals::{self, ShutdownPhase},
    wait,
};
use service_manager::ServiceManager;

/// How many lines with the same message are logged in a window of time; the others are summed up in one line.
const REPEATS: u32 = 10;

/// Accepts batches and submits them to the ledger, until SIGINT or SIGTERM
#[derive(Debug, Args)]
#[command(after_help = flags::OF_SETTINGS)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    settings: SettingFlags<All>,
}

pub(crate) fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let config = args.settings.load()?;
    logging::start(config.general.log.as_str(), config.general.log_format, REPEATS)?;
    let phase = Arc::new(ShutdownPhase::default());
    let (request_shutdown, shutdown) = signals::shutdown_channel(Arc::clone(&phase))?;
    config.warn();
    if !wait::for_database(&config, &shutdown)? {
        return Ok(ExitCode::SUCCESS);
    }
    phase.begin_exit_at_once();
    let server = Server::start(&config)?;
    phase.end_exit_at_once();
    let content = match config.facts() {
        Some(facts) if facts.signs_batches => "withdrawals",
        _ => "batches",
    };
    print_stdout(format_args!("Accepting {content} at {}/{content}", server.url()));
    let manager = ServiceManager::of_environment();
    manager.ready(&server.url());
    let watched = watched_address(&config, &server.url());
    let watchdog = manager.watch(move |limit| {
        watched.as_ref().is_none_or(|address| liveness::answers(address, limit))
    })?;
    server.on_ledger_mismatch(move || {
        // The command may have ended already.
        let _ = request_shutdown.send(());
    });
    shutdown.recv()?;
    manager.stopping();
    drop(watchdog);
    let mismatch = server.ledger_mismatch().cloned();
    server.stop()?;
    if let Some(mismatch) = mismatch {
        return Err(mismatch.into());
    }
    info!("server stopped");
    Ok(ExitCode::SUCCESS)
}

/// The first address, with its actual port.
fn watched_address(config: &Config, url: &str) -> Option<ListenAddress> {
    let chosen = url.split_once("://").and_then(|(_, address)| address.parse().ok());
    match (config.general.listen.first()?, chosen) {
        (ListenAddress::Tcp(_), Some(address)) => Some(ListenAddress::Tcp(address)),
        (ListenAddress::Tls(_), Some(address)) => Some(ListenAddress::Tls(address)),
        (address, _) => Some(address.clone()),
    }
}
