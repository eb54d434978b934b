//! Withdrawals and rewards, with pools of two gas admins.

mod database_errors;
mod gas_admins;
mod grouping;
mod idempotency;
mod list;
mod malformed_input;
mod operations;
mod rewards;
mod routes;
mod schedule;
mod states;
pub mod test_pools;
mod validation;
