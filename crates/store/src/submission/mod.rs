//! Handing batches to submitters: taking rounds, recording outcomes, and recovering batches whose
//! outcome never came.

mod apply_policies;
mod candidates;
mod delay;
mod finish_halts;
mod free_dependents;
mod observer;
mod recovery;
mod round;
mod under_way;

pub(crate) use recovery::{find_with_submitter, owner_lost, recover};

pub use delay::DelayOptions;
pub use free_dependents::FreedDependents;
pub use observer::StoreObserver;
