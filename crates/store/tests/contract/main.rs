//! What every database must do, tested on both.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

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
mod status_view;
mod story;
mod withdrawals;
