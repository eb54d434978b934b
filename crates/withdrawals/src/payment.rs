use crate::{AssignedNonce, WithdrawalId};

/// A withdrawal as it stands with the account that pays its gas: what is to be paid, and what was
/// signed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The withdrawal.
    pub withdrawal_id: WithdrawalId,
    /// How often it was begun: more than once where a person had it tried anew.
    pub generation: u32,
    /// The pool that pays.
    pub pool: String,
    /// Whom it pays.
    pub beneficiary: String,
    /// How much.
    pub amount: String,
    /// A person wants it undone, if that can still be.
    pub cancel_requested: bool,
    /// The nonce that it has. One that came to nothing is its nonce no more when the withdrawal is
    /// tried anew.
    pub nonce: Option<AssignedNonce>,
}
