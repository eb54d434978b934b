//! Handing batches to submitters: taking rounds, recording outcomes, and recovering batches whose
//! outcome never came.

mod apply_policies;
mod being_sent;
mod candidates;
mod delay;
mod finish_halts;
mod free_dependents;
mod history;
mod observer;
mod recovery;
mod round;
mod under_way;

pub(crate) use being_sent::{being_sent, find_stopped};
pub(crate) use free_dependents::free_dependents;
pub(crate) use history::{committed_before, has_committed};
pub(crate) use recovery::{find_with_submitter, owner_lost, recover};
pub(crate) use round::{RoundOwner, give_back, ready_services, take_round};
pub(crate) use under_way::find_under_way;

pub use delay::DelayOptions;
pub use free_dependents::FreedDependents;
pub use observer::StoreObserver;
