//! The contract of the store, tested on both databases.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod fixture;
mod read_counts;

mod adding;
mod claims;
mod concurrency;
mod decisions;
mod details;
mod due;
mod ending;
mod events;
mod faults;
mod holding;
mod intake_limits;
mod intake_lists;
mod listing;
mod locked_rows;
mod model;
mod monitoring;
mod namespaces;
#[cfg(feature = "withdrawals")]
mod new_migrations;
mod observing;
mod opening;
mod operator_actions;
mod order;
mod paging;
mod pauses;
mod program_transactions;
mod recording;
mod recovery;
#[cfg(feature = "withdrawals")]
mod releases;
mod restored;
mod retention;
mod rounds;
mod samples;
mod scheduling;
mod service_histories;
mod services;
#[cfg(feature = "withdrawals")]
mod signing;
mod status_view;
mod tokens;
mod under_way;
mod webhooks;
#[cfg(feature = "withdrawals")]
mod withdrawals;
