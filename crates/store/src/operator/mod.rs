//! What operators read and do: held batches and decisions, lists, details, counts and retention.

mod details;
mod held;
mod list;
mod retention;

pub(crate) use details::{count_ahead, details, find, open_batches, serialized_batch};
pub(crate) use held::{decide, held_batches};
pub(crate) use list::{count, depth, depths, list};
pub(crate) use retention::remove_ended;
pub use retention::{Removed, RetentionCursor};
