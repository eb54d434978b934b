//! Hands batches to submitters: takes rounds, records outcomes, and recovers batches whose outcome was never reported.

mod delay;
mod dependents;
mod free_dependents;
mod observer;
mod round;
mod with_submitter;

pub(crate) use with_submitter::{being_sent, find_with_submitter, owner_lost, recover};

pub use dependents::Dependents;
pub use free_dependents::FreedDependents;
pub use observer::StoreObserver;
