//! Tests of the adapter with recorded responses and with the simulated ledger.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod batches;
mod events;
mod evidence;
mod identity;
mod ledger;
mod lists;
mod nodes;
mod outages;
mod outcomes;
mod pass_through;
mod rest_api;
mod several_batches;
mod statuses;
