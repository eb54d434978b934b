use grid_batch_core::Timestamp;

use crate::SignedTransaction;

/// The nonce that a withdrawal has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedNonce {
    /// The nonce.
    pub nonce: u64,
    /// The generation that it was given to.
    pub generation: u32,
    /// When.
    pub assigned_at: Timestamp,
    /// What was seen of it last, in words.
    pub note: Option<String>,
    /// The hash of a transaction that was not signed here, and that the chain showed with it last.
    pub foreign_hash: Option<[u8; 32]>,
    /// What became of it, where that is known for good.
    pub outcome: Option<NonceOutcome>,
    /// What was signed with it, the oldest first.
    pub transactions: Vec<SignedTransaction>,
}

/// What became of a nonce for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NonceOutcome {
    /// The withdrawal was made, and the pool gave it this id.
    Withdrawn {
        /// The pool's id, in decimal digits.
        withdrawal_id: String,
    },
    /// The pool refused the withdrawal when it was mined.
    Reverted,
    /// The nonce was used up on purpose.
    Cancelled,
    /// Something used it that was not signed here.
    UsedElsewhere,
}
