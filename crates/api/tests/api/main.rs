//! The interface over real HTTP, on a store in a file.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod bounds;
mod client;
mod ending;
mod faults;
mod fixture;
mod intake;
mod paths;
mod rubbish;
mod statuses;
mod withdrawals;
