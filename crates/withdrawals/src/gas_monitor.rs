use std::time::Duration;

use futures_core::future::BoxFuture;

/// Watches the gas price and the balances on a ledger.
pub trait GasMonitor: Send + Sync {
    /// Reads the gas price and the balances from the ledger, and returns whether a node answered. Dropping
    /// the future ends it.
    fn look(&self) -> BoxFuture<'_, bool>;

    /// How often to look.
    fn interval(&self) -> Duration;

    /// A summary of what was seen last, from memory.
    fn health(&self) -> GasHealth;
}

/// The gas price and the balances, as far as `/health` shows them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GasHealth {
    /// Gas admins that could not pay when that was last needed.
    pub without_funds: u64,
    /// The names of the others whose balance is low.
    pub low_balances: Vec<String>,
    /// Withdrawals that were paid, since the start, after an operator decided that they are invalid.
    pub paid_after_failure: u64,
    /// Pools whose cap the price is not below.
    pub pools_above_cap: u64,
    /// For how long that has been so, for the first of them.
    pub above_cap_for: Duration,
    /// How old the oldest balance is, if it should have been read again long ago. `None` before the
    /// first look too.
    pub overdue: Option<Duration>,
    /// The gas admins, for the metrics.
    pub gas_admins: Vec<GasAdminAmounts>,
}

/// What a gas admin has and pays, in wei, as samples are: rounded.
#[derive(Debug, Clone, PartialEq)]
pub struct GasAdminAmounts {
    /// The name that the operator gave it.
    pub name: String,
    /// `None`: it was not read yet.
    pub balance: Option<f64>,
    /// `None`: it was not read yet.
    pub gas_price: Option<f64>,
    /// The price from which on it pays nothing.
    pub gas_price_cap: f64,
}
