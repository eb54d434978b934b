//! What operators read and do: holds and decisions, lists, details, counts and retention.

mod ahead;
mod decide;
mod details;
mod held;
mod hold;
mod list;
mod retention;
mod retry;
mod service_counts;

pub(crate) use ahead::{ahead, count_ahead};
pub(crate) use decide::decide;
pub(crate) use details::{details, find, find_by_prefix, open_batches, serialized_batch};
pub(crate) use held::{held_batches, waiting_holds};
pub(crate) use hold::{hold, release};
pub(crate) use list::{count, depth, depths, list};
pub(crate) use retention::{count_removable, remove_ended, start_retention};
pub use retry::EndedDelays;
pub(crate) use retry::end_delays;
pub use service_counts::ServiceCounts;
pub(crate) use service_counts::service_counts;
