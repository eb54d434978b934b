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

    /// A summary of what was seen last, from memory.
    fn health(&self) -> GasHealth;

    /// What was seen last of each gas admin, from memory.
    fn gas_admins(&self) -> Vec<GasAdminState>;

    /// What the gas of so many withdrawals of a gas admin costs at the present price, in wei.
    fn cost_of(&self, gas_admin: &ServiceId, withdrawals: u64) -> Option<String>;
}

/// What is known of the gas of one gas admin. Amounts of coins are in wei, prices in gwei.
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
    /// Whether that is a usual value, because no withdrawal was simulated since the start.
    pub gas_is_assumed: bool,
    /// Whether it could pay for the gas when that was last needed.
    pub can_pay: bool,
    /// How many withdrawals the balance pays for at the cap, if that is known and gas is not free.
    pub withdrawals_left: Option<u64>,
    /// Whether these are fewer than they should be.
    pub is_low: bool,
    /// Its pools.
    pub pools: Vec<GasPoolState>,
}

/// What is known of the gas of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GasPoolState {
    /// Its address.
    pub address: String,
    /// The cap of the gas price.
    pub gas_price_cap: String,
    /// For how long the price has not been below the cap, if it is not.
    pub above_cap_for: Option<Duration>,
    /// The balance of the contract in the chain's own coins.
    pub balance: LastRead,
}

/// What was last read of a value on the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastRead {
    /// The value, if it was ever read.
    pub value: Option<String>,
    /// How long ago it was read.
    pub age: Option<Duration>,
    /// Why it could not be read when that was tried last.
    pub error: Option<String>,
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
