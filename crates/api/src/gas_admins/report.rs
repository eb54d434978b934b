use grid_batch_withdrawals::{GasAdminQueue, LastFailure};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{http::Time, withdrawals::Queued};

/// What `/v1/gas-admins` shows about one gas admin.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct GasAdminReport {
    /// The name that the operator gave it.
    pub name: String,
    /// Its address.
    pub address: String,
    /// The service that orders its withdrawals and transactions.
    pub gas_admin: String,
    /// Its balance and the gas price.
    #[serde(flatten)]
    pub gas: GasReport,
    /// Its open withdrawals and transactions.
    pub queue: QueueReport,
    /// The withdrawal that failed last.
    pub last_failure: Option<FailureReport>,
    /// Its pools.
    pub pools: Vec<PoolReport>,
}

/// What a gas admin has, and what gas costs. Amounts of coins are in wei.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct GasReport {
    /// The balance.
    pub balance: Reading,
    /// The gas price, in gwei.
    pub gas_price_gwei: Reading,
    /// The cap of the gas price, in gwei: the highest of its pools and transactions.
    pub maximum_gas_price_gwei: String,
    /// The gas that a withdrawal may use.
    pub gas_per_withdrawal: u64,
    /// Whether that is a usual value, because no withdrawal was simulated since the start.
    pub gas_is_assumed: bool,
    /// How many withdrawals the balance pays for at the cap.
    pub withdrawals_left: Option<u64>,
    /// Whether these are too few, fewer than 20.
    pub low_balance: bool,
    /// What the gas of what is not sent yet costs at the present price.
    pub estimated_cost: Option<String>,
}

/// A value that is read from the chain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct Reading {
    /// The value that was read last; null if none was.
    pub value: Option<String>,
    /// How long ago it was read.
    pub age_seconds: Option<f64>,
    /// Why the last try to read it failed, or why there is no value.
    pub error: Option<String>,
}

/// The open withdrawals and transactions of a gas admin.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct QueueReport {
    open: u64,
    waiting: u64,
    in_progress: u64,
    parked: u64,
    held: u64,
    oldest_scheduled_at: Option<Time>,
    last_error: Option<String>,
}

/// A withdrawal that failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FailureReport {
    id: String,
    path: String,
    pool: String,
    reason: Option<String>,
    failed_at: Time,
}

/// What `/v1/gas-admins` shows about one pool.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PoolReport {
    /// Its address.
    pub address: String,
    /// The cap of the gas price, in gwei.
    pub maximum_gas_price_gwei: String,
    /// Why its withdrawals are not sent now, if they are not.
    pub paused: Option<GasPause>,
    /// What the contract has of the chain's own coins, in wei.
    pub balance: Reading,
    /// The sum of the amounts of the last 24 hours.
    pub scheduled_in_24h: String,
    /// The largest amount of a withdrawal, if it is limited.
    pub maximum_payment: Option<String>,
    /// The largest sum of a day, if it is limited.
    pub maximum_payments_per_day: Option<String>,
    /// The withdrawal that failed last.
    pub last_failure: Option<FailureReport>,
}

/// Why the withdrawals of a pool are not sent.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct GasPause {
    /// The reason, for a person.
    pub reason: String,
    /// For how long, if that is known.
    pub for_seconds: Option<f64>,
}

impl From<&GasAdminQueue> for QueueReport {
    fn from(queue: &GasAdminQueue) -> Self {
        Self {
            open: queue.open,
            waiting: queue.waiting,
            in_progress: queue.in_progress,
            parked: queue.parked,
            held: queue.held,
            oldest_scheduled_at: queue.oldest_scheduled_at.map(Time),
            last_error: queue.last_error.clone(),
        }
    }
}

impl From<&LastFailure> for FailureReport {
    fn from(failure: &LastFailure) -> Self {
        Self {
            id: failure.withdrawal_id.to_string(),
            path: Queued::Withdrawal.path(&failure.withdrawal_id),
            pool: failure.pool.clone(),
            reason: failure.reason.clone(),
            failed_at: Time(failure.failed_at),
        }
    }
}
