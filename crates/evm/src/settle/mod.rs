//! Settles nonces that the chain has used for transactions that are not stored. The database may be an older copy, so
//! one of these may have paid an open withdrawal.

mod before_move;
mod found_use;
mod history;
mod matching;
mod own_use;
mod search;
mod settlement;
mod used_nonce;

pub use before_move::EvmAccountCheck;
pub(crate) use settlement::Settled;
pub(crate) use used_nonce::UsedNonce;
