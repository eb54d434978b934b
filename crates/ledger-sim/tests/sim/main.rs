//! The simulated ledgers over real HTTP.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod batches;
mod client;
mod events;
mod faults;
mod fixtures;
mod ledgers;
mod record;
mod sawtooth;
mod scabbard;
