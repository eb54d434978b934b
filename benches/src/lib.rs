//! Measures the server from outside: server, ledger, database and client are processes of their own.
#![expect(clippy::unwrap_used, reason = "a benchmark panics at any error")]

pub mod arrangement;
pub mod backlog;
pub mod ceilings;
pub mod command_line;
pub mod comparison;
pub mod database;
pub mod ledger;
pub mod load;
pub mod measurement;
pub mod proc_stats;
pub mod processes;
pub mod report;
pub mod requests;
pub mod rivals;
pub mod run;
pub mod run_options;
pub mod store_cycle;
pub mod table;
