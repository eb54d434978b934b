//! What operators read and do: holds and decisions, lists, details, counts and retention.

mod decide;
mod details;
mod held;
mod hold;
mod list;
mod retention;
mod service_counts;

pub(crate) use decide::decide;
pub(crate) use details::{count_ahead, details, find, open_batches, serialized_batch};
pub(crate) use held::{held_batches, waiting_holds};
pub(crate) use hold::{hold, release};
pub(crate) use list::{count, depth, depths, list};
pub(crate) use retention::remove_ended;
pub use retention::{Removed, RetentionCursor};
pub use service_counts::ServiceCounts;
pub(crate) use service_counts::service_counts;
