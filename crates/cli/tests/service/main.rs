//! The whole service and its program, as a process, against simulated ledgers.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod batches;
mod bench;
mod client;
mod program;
mod until;

mod command_line;
mod crowd;
mod deciding;
mod demo_faults;
mod killed;
mod rubbish_configuration;
mod rubbish_database;
mod rubbish_requests;
mod serve;
