//! Withdrawals end to end: the server as a process, a real EVM node, and a proxy between them that
//! injects faults.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use grid_batch_test_support::process::Binary;

mod harness;

mod configuration;
mod demo;
mod foreign_transactions;
mod gas_price_gate;
mod instances;
mod intake;
mod kill_points;
mod nodes;
mod order;
mod random_faults;
mod rejections;
mod restored_database;

const GRID_BATCH: Binary = Binary(env!("CARGO_BIN_EXE_grid-batch"));
