use std::time::Duration;

use futures_core::future::BoxFuture;
use grid_batch_core::ServiceId;

/// Watches the gas price and the balances on a ledger.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait GasMonitor: Send + Sync {
    /// Reads the gas price and the balances from the ledger, and returns whether a node answered. Dropping
    /// the future ends it.
    fn look(&self) -> BoxFuture<'_, bool>;

    /// How often to look.
    fn interval(&self) -> Duration;

    /// A summary of the last observations, from memory.
    fn health(&self) -> GasHealth;

    /// The last observations of each gas admin, from memory.
    fn gas_admins(&self) -> Vec<GasAdminState>;

    /// The cost of the gas of this many withdrawals of a gas admin at the present price, in wei.
    fn cost_of(&self, gas_admin: &ServiceId, withdrawals: u64) -> Option<String>;
}

/// What is known about the gas of one gas admin. Amounts of coins are in wei, prices in gwei.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GasAdminState {
    /// The service that orders its withdrawals.
    pub service_id: ServiceId,
    /// The name that the operator gave it.
    pub name: String,
    /// Its address.
    pub address: String,
    /// Its balance.
    pub balance: LastRead,
    /// The gas price.
    pub gas_price: LastRead,
    /// The highest cap of its pools.
    pub gas_price_cap: String,
    /// The gas of one withdrawal.
    pub gas_per_withdrawal: u64,
    /// Whether `gas_per_withdrawal` is a usual value, because no withdrawal was simulated since the start.
    pub gas_is_assumed: bool,
    /// Whether it could pay for the gas when it last needed to.
    pub can_pay: bool,
    /// How many withdrawals the balance pays for at the cap, if that is known and gas is not free.
    pub withdrawals_left: Option<u64>,
    /// Whether `withdrawals_left` is below the configured number.
    pub is_low: bool,
    /// Its pools.
    pub pools: Vec<GasPoolState>,
}

/// What is known about the gas of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GasPoolState {
    /// Its address.
    pub address: String,
    /// The cap of the gas price.
    pub gas_price_cap: String,
    /// For how long the price has been at or above the cap, if it is now.
    pub above_cap_for: Option<Duration>,
    /// The balance of the contract in the chain's own coins.
    pub balance: LastRead,
}

/// The last reading of a value on the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastRead {
    /// The value, if it was ever read.
    pub value: Option<String>,
    /// How long ago it was read.
    pub age: Option<Duration>,
    /// Why the last attempt to read it failed.
    pub error: Option<String>,
}

/// The parts of the gas price and the balances that `/health` shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GasHealth {
    /// The number of gas admins that could not pay when they last needed to.
    pub without_funds: u64,
    /// The names of the other gas admins whose balance is low.
    pub low_balances: Vec<String>,
    /// The number of withdrawals that were paid since the start although an operator had decided that they are invalid.
    pub paid_after_failure: u64,
    /// The number of pools for which the price is at or above the cap.
    pub pools_above_cap: u64,
    /// For how long this has been the case for the first of them.
    pub above_cap_for: Duration,
    /// The age of the oldest balance, if it should have been read again long ago. Also `None` before the first look.
    pub overdue: Option<Duration>,
    /// The gas admins, for the metrics.
    pub gas_admins: Vec<GasAdminAmounts>,
}

/// The amounts of a gas admin in wei, rounded, for samples of metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct GasAdminAmounts {
    /// The name that the operator gave it.
    pub name: String,
    /// `None`: it was not read yet.
    pub balance: Option<f64>,
    /// `None`: it was not read yet.
    pub gas_price: Option<f64>,
    /// It pays nothing while the price is at or above this.
    pub gas_price_cap: f64,
}
