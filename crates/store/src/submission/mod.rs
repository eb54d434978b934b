//! Handing batches to submitters: taking rounds, recording outcomes, and recovering batches whose
//! outcome never came.

mod history;
mod observer;
mod recovery;
mod round;

pub(crate) use history::committed_before;
pub(crate) use recovery::{find_with_submitter, owner_lost, recover};
pub(crate) use round::{RoundOwner, give_back, ready_services, take_fitting_round, take_round};

pub use observer::StoreObserver;
