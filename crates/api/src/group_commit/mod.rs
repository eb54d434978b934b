//! Storing what requests bring: those that wait at the same time share a commit.

mod commit_progress;
mod queue;
mod writer;

pub use commit_progress::{CommitFailure, CommitProgress};
pub(crate) use queue::{WriteQueue, WriteRequest, WriteSlot};
pub(crate) use writer::{GroupSize, GroupStore, GroupWriter, QueueOf};
