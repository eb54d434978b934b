//! A start that waits for the database.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

use grid_batch_service::Config;
use grid_batch_store::Store;
use grid_batch_support::{Backoff, ErrorChain, one_line};
use log::{info, warn};

use crate::commands::failure::Failure;

/// Waits up to `store.start_timeout` until the database can be reached. A database that refuses the
/// connection for another reason, such as a wrong password, is not waited for. Returns whether the start
/// goes on: not if a shutdown was requested.
pub(crate) fn for_database(config: &Config, shutdown: &Receiver<()>) -> Result<bool, Failure> {
    const PAUSES: Backoff =
        Backoff { first: Duration::from_millis(50), longest: Duration::from_secs(1) };
    let (started, limit) = (Instant::now(), config.store.start_timeout.0);
    let mut failures = 0;
    let options = config.store_options();
    // The start itself reports an error if there is no time to wait.
    while let Some(left) = limit.checked_sub(started.elapsed()) {
        let Err(error) = Store::check_reachable(&config.general.database, &options) else { break };
        if !error.is_unavailable() {
            return Err(error.into());
        }
        if failures == 0 {
            warn!(error = one_line(ErrorChain(&error).to_string()).as_str(), limit_seconds = limit.as_secs();
                "the database cannot be reached; waiting for it");
        }
        match shutdown.recv_timeout(PAUSES.whole_delay(failures).min(left)) {
            Err(RecvTimeoutError::Timeout) => failures += 1,
            _ => return Ok(false),
        }
    }
    if failures > 0 {
        info!(waited_seconds = started.elapsed().as_secs(); "the wait for the database has ended");
    }
    Ok(true)
}
