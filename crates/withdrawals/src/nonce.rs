use grid_batch_core::Timestamp;

use crate::SignedTransaction;

/// A nonce of a gas admin that was assigned to a withdrawal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedNonce {
    /// The nonce.
    pub nonce: u64,
    /// The generation of the withdrawal that it was assigned to.
    pub generation: u32,
    /// When it was assigned.
    pub assigned_at: Timestamp,
    /// What was last observed about it, for operators and clients.
    pub note: Option<String>,
    /// The hash of a transaction that was not signed here and that the chain last showed with this
    /// nonce.
    pub foreign_hash: Option<[u8; 32]>,
    /// How the use of the nonce ended. `None`: it is still open.
    pub outcome: Option<NonceOutcome>,
    /// The transactions that were signed with it, the oldest first.
    pub transactions: Vec<SignedTransaction>,
}

/// How the use of a nonce ended. An outcome is final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NonceOutcome {
    /// The withdrawal was made; the pool gave it this id.
    Withdrawn {
        /// The pool's id, in decimal digits.
        withdrawal_id: String,
    },
    /// The withdrawal was mined, and the pool refused it.
    Reverted,
    /// A filler was mined: the withdrawal was cancelled.
    Cancelled,
    /// A transaction that was not signed here used the nonce.
    UsedElsewhere,
}
