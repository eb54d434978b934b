//! What happened to batches: written in the transaction of each change, read as a feed and by batch.

mod cursor;
mod late;
mod read;
mod reader;
mod remove;
mod rows;
mod seqs;
mod snapshot;
mod write;

pub(crate) use read::latest;
pub(crate) use remove::{remove_events_of, remove_groups};
pub(crate) use snapshot::begin_generation;
pub(crate) use write::{NewEvent, insert_events};
