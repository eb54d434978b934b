use crate::{AssignedNonce, WithdrawalId};

/// A withdrawal as the sender needs it: what to pay, and what was signed for it so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The withdrawal.
    pub withdrawal_id: WithdrawalId,
    /// How often it was started: 1 plus the number of retries.
    pub generation: u32,
    /// The pool that pays.
    pub pool: String,
    /// The account that is paid.
    pub beneficiary: String,
    /// How much is paid.
    pub amount: String,
    /// Whether its cancellation was requested.
    pub cancel_requested: bool,
    /// Whether it was stored before the database was restored, so that it may have been paid with a nonce that is not
    /// stored.
    pub is_restored: bool,
    /// Its nonce, if one is assigned. A nonce that did not pay belongs only to its own generation.
    pub nonce: Option<AssignedNonce>,
}

impl Payment {
    /// Its nonce, if it may still be used.
    pub fn open_nonce(&self) -> Option<&AssignedNonce> {
        self.nonce.as_ref().filter(|nonce| nonce.outcome.is_none())
    }
}
