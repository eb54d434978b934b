//! Queries and actions of operators: holds and decisions, lists, details, counts and retention.

mod act;
mod ahead;
mod batch_actions;
mod claims;
mod counts;
mod details;
mod holds;
mod list;
mod open_states;
mod page;
mod pauses;
mod queue_counts;
mod retention;
mod retry;
mod samples;
mod service_counts;
mod services;
#[cfg(feature = "tokens")]
mod tokens;
mod wait_reasons;

pub(crate) use ahead::{count_ahead_to_limit, load_open_times};
pub(crate) use batch_actions::try_again;
pub(crate) use claims::set_draining;
pub(crate) use holds::{waiting_holds_of, with_waiting_hold};
pub(crate) use page::fill_page;
pub use retry::EndedDelays;
