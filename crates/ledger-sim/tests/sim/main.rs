//! The simulated ledgers, over HTTP.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod batches;
mod circuit;
mod client;
mod events;
mod faults;
mod fixtures;
mod ledgers;
mod lists;
mod nodes;
mod outages;
mod record;
mod repeated;
mod requests;
mod sawtooth;
mod scabbard;
mod state;
