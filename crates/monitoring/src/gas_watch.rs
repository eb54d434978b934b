use std::{sync::Arc, time::Duration};

use grid_batch_support::{Job, Jobs};
use grid_batch_withdrawals::GasMonitor;
use tokio::time::sleep;

/// How soon to ask again when no node has answered.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Starts the job that reads the gas price and the balances from the chain.
pub fn watch_gas(monitor: Arc<dyn GasMonitor>, jobs: &Jobs) -> Job {
    jobs.spawn("gas-watch", async move {
        loop {
            let interval = monitor.interval();
            let pause = if monitor.look().await { interval } else { interval.min(RETRY_INTERVAL) };
            sleep(pause).await;
        }
    })
}
