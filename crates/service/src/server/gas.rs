//! The gas price and the balances of gas admins and pools: read from the chain at intervals, and shown.

use std::{sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use grid_batch_api::GasAdminReport;
use grid_batch_core::BatchResult;
use grid_batch_store::Store;
use grid_batch_support::{Job, Jobs};
use tokio::time::sleep;

/// Watches the gas price and the balances on a ledger.
pub(super) trait GasMonitor: Send + Sync {
    /// Reads the gas price and the balances from the ledger, and returns whether a node answered. Dropping
    /// the future ends it.
    fn look(&self) -> BoxFuture<'_, bool>;

    /// How often to look.
    fn interval(&self) -> Duration;

    /// A summary of what was seen last, from memory.
    fn health(&self) -> GasHealth;

    /// What was seen last, with what is stored. It asks no node.
    fn reports(&self, store: &Store) -> BatchResult<Vec<GasAdminReport>>;
}

/// The gas price and the balances, as far as `/health` shows them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct GasHealth {
    /// Gas admins that could not pay when that was last needed.
    pub(super) without_funds: u64,
    /// The names of the others whose balance is low.
    pub(super) low_balances: Vec<String>,
    /// Withdrawals that were paid, since the start, after an operator decided that they are invalid.
    pub(super) paid_after_failure: u64,
    /// Pools whose cap the price is not below.
    pub(super) pools_above_cap: u64,
    /// For how long that has been so, for the first of them.
    pub(super) above_cap_for: Duration,
    /// How old the oldest balance is, if it should have been read again long ago. `None` before the
    /// first look too.
    pub(super) overdue: Option<Duration>,
    /// The gas admins, for the metrics.
    pub(super) gas_admins: Vec<GasAdminAmounts>,
}

/// What a gas admin has and pays, in wei, as samples are: rounded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GasAdminAmounts {
    pub(super) name: String,
    /// `None`: it was not read yet.
    pub(super) balance: Option<f64>,
    pub(super) gas_price: Option<f64>,
    pub(super) gas_price_cap: f64,
}

/// How soon to look again when no node has answered.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Starts the job that looks.
pub(super) fn watch(monitor: Arc<dyn GasMonitor>, jobs: &Jobs) -> Job {
    jobs.spawn("gas-watch", async move {
        loop {
            let interval = monitor.interval();
            let pause = if monitor.look().await { interval } else { interval.min(RETRY_INTERVAL) };
            sleep(pause).await;
        }
    })
}
