//! Tests of the adapter with a real node, behind a proxy that injects the faults of real nodes.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod before_signing;
mod cancellation;
mod clock_jumps;
mod fillers;
mod final_results;
mod foreign_use;
mod gates;
mod harness;
mod lagging_nodes;
mod memory_store;
mod oracle;
mod replacement;
mod restored_store;
mod sending;
mod several_nodes;
mod store_failures;
