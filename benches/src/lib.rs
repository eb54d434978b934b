//! Measures the server from outside: server, ledger, database and client are processes of their own.
#![expect(clippy::unwrap_used, reason = "a benchmark panics at any error")]

pub mod backlog;
pub mod ceilings;
pub mod database;
pub mod ledger;
pub mod load;
pub mod measurement;
pub mod options;
pub mod process;
pub mod report;
pub mod rivals;
pub mod run;
mod run_options;
pub mod server;
pub mod signatures;
pub mod store_cycle;
pub mod table;
