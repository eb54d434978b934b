//! The contract of the store, tested on both databases.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod fixture;

mod adding;
mod claims;
mod concurrency;
mod ending;
mod faults;
mod following;
mod holding;
mod listing;
mod model;
mod monitoring;
mod observing;
mod opening;
mod order;
mod recording;
mod recovery;
mod removing;
mod rounds;
mod signing;
mod story;
mod withdrawals;
