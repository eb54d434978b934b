//! Withdrawals end to end: the server as a process, a real EVM node, and a proxy between them that
//! injects faults.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use grid_batch_test_support::process::Binary;

mod harness;
mod plain_loop;
mod transaction_requests;

mod bulk_retry;
mod chains;
mod commands;
mod configuration;
mod dashboard;
mod demo;
mod described_interface;
mod explanations;
mod foreign_transactions;
mod gas_admins;
mod gas_price_gate;
mod guide;
mod in_flight;
mod instances;
mod intake;
mod keys;
mod kill_points;
mod lists;
mod mixed_transactions;
mod moved_gas_admin;
mod nodes;
mod nonce_gaps;
mod order;
mod parked_pools;
mod paying_pools;
mod payment_limits;
mod random_faults;
mod refusals;
mod rejections;
mod reported_bugs;
mod reports;
mod restored_database;
mod speed;
mod throughput;
mod transactions;
mod wrong_answers;

const GRID_BATCH: Binary = Binary(env!("CARGO_BIN_EXE_grid-batch"));
