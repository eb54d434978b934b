//! The adapter against answers as they were recorded, and against the simulated ledger.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod batches;
mod events;
mod evidence;
mod ledger;
mod outcomes;
mod rest_api;
mod statuses;
