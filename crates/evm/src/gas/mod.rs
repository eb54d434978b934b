//! Observes the gas price and balances: with each attempt to send, and at intervals, so that a low balance is noticed
//! before it delays a withdrawal.

mod account_gas;
mod low_balance_log;
mod monitor;
mod observations;
mod watch;

pub use account_gas::{AccountGas, GasLimit, PoolGas, Seen};
pub(crate) use observations::GasObservations;
pub use watch::{GasWatch, WatchedAccount};
