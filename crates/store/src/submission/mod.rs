//! Handing batches to submitters: taking rounds, recording outcomes, and recovering batches whose
//! outcome never came.

mod delay;
mod free_dependents;
mod history;
mod observer;
mod round;
mod with_submitter;

pub(crate) use free_dependents::free_dependents;
pub(crate) use history::{committed_before, has_committed};
pub(crate) use round::{RoundOwner, give_back, ready_services, take_round};
pub(crate) use with_submitter::{
    being_sent, find_stopped, find_under_way, find_with_submitter, owner_lost, recover,
};

pub use delay::DelayOptions;
pub use free_dependents::FreedDependents;
pub use observer::StoreObserver;
