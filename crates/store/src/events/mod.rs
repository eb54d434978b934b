//! The events of batches. They are written in the transaction of each change, and read as a feed or by batch.

#[cfg(feature = "events")]
mod cursor;
#[cfg(feature = "events")]
mod read;
#[cfg(feature = "events")]
mod reader;
mod remove;
mod rows;
mod snapshot;
mod write;

#[cfg(feature = "webhooks")]
pub(crate) use read::latest;
#[cfg(feature = "webhooks")]
pub(crate) use remove::lock_feed;
pub(crate) use remove::{remove_events_of, remove_groups};
pub(crate) use snapshot::begin_generation;
pub(crate) use write::{NewEvent, insert_events};
