//! What operators read and do: held batches and decisions, lists, details, counts and retention.

mod details;
mod held;
mod list;
mod retention;

pub use retention::{Removed, RetentionCursor};
