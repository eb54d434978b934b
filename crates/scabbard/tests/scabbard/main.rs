//! The adapter against answers of genuine nodes, against broken ones, and against the simulated
//! ledger.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod batches;
mod events;
mod evidence;
mod faults;
mod fixtures;
mod node;
mod nodes;
mod runtimes;
mod sending;
mod statuses;
mod world;
