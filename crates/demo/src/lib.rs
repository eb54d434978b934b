#![doc = include_str!("../README.md")]

mod accounts;
mod batches;
mod clients;
mod demonstration;
mod directory;
mod error;
mod faults;
mod operator;
mod options;
mod progress;
mod report;
mod settings;
mod used_database;
#[cfg(feature = "evm")]
mod withdrawals;

pub use demonstration::{demonstrate, demonstrate_and_keep};
pub use error::DemoError;
pub use options::{DemoOptions, FaultLevel, SimulatedLedger};
pub use progress::DemoProgress;
pub use report::DemoReport;
#[cfg(feature = "evm")]
pub use withdrawals::{
    WithdrawalDemoOptions, WithdrawalProgress, WithdrawalReport, demonstrate_withdrawals,
};
