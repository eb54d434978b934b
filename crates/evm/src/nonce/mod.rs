//! What nodes show about a nonce: whether it was used, by which transaction, and whether that is
//! final. Sending, status reading and evidence all decide on it.

mod dispute;
mod final_result;
mod finality;
mod foreign_use;
mod nodes;
mod observation;
mod other_nodes;

pub(crate) use dispute::find_dispute;
pub(crate) use final_result::final_result;
pub(crate) use finality::Confirmations;
pub(crate) use foreign_use::{find_nonce_user, is_foreign_use_final, search_blocks};
pub(crate) use nodes::{BestObservation, check_chain, find_at_any, observe_nonce};
pub(crate) use observation::{MinedTransaction, NonceObservation};
pub(crate) use other_nodes::{node_ahead, others_show_at_most};
