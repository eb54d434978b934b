//! Tests of the adapter with recorded responses, with broken ones, and with the simulated ledger.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod batches;
mod circuit;
mod circuits;
mod earlier_submissions;
mod events;
mod evidence;
mod faults;
mod fixtures;
mod memory_history;
mod new_batches;
mod node;
mod nodes;
mod pass_through;
mod repeated_kills;
mod runtimes;
mod sending;
mod statuses;
mod test_ledger;
mod unknown_services;
mod whole_replays;
