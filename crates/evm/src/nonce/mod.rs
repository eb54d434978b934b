//! What nodes show about a nonce: whether it was used, by which transaction, and whether this is final. Sending, status
//! reading and evidence all depend on it.

mod final_result;
mod finality;
mod foreign_use;
mod observation;
mod observe;

pub(crate) use final_result::final_result;
pub(crate) use finality::Finality;
pub(crate) use foreign_use::search_blocks;
pub(crate) use observation::{MinedTransaction, NonceObservation};
pub(crate) use observe::BestObservation;
