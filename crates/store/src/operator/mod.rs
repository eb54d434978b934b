//! What operators read and do: held batches and decisions, lists, details, counts and retention.

mod details;
mod held;
mod list;
mod retention;

pub(crate) use details::count_ahead;
pub use retention::{Removed, RetentionCursor};
