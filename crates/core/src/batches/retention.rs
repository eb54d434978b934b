use std::time::Duration;

use crate::{BatchResult, Timestamp};

/// A position in a pass over all batches in the order in which they were stored: that of the last batch
/// that was examined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionCursor(pub i64);

/// The result of one step of retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    /// How many batches were removed.
    pub batches: usize,
    /// Where the next step continues; `None` after the last step.
    pub next: Option<RetentionCursor>,
}

/// What a step of retention would remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removable {
    /// How many batches it would remove.
    pub batches: usize,
    /// The total size of their bytes, without the overhead of the database.
    pub bytes: u64,
    /// When the first of them ended.
    pub oldest_end: Option<Timestamp>,
    /// Where the next step continues; `None` after the last step.
    pub next: Option<RetentionCursor>,
}

/// A store from which ended batches are removed.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait RetentionStore: Send {
    /// Starts a pass over all batches, unless an instance has started one less than `interval` ago.
    fn start_retention(&self, interval: Duration) -> BatchResult<bool>;

    /// Removes those of the next `limit` batches that ended at least `age` ago.
    fn remove_ended_before(
        &self,
        age: Duration,
        from: Option<RetentionCursor>,
        limit: usize,
    ) -> BatchResult<Removed>;
}
