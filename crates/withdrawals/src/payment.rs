use grid_batch_core::Timestamp;

use crate::{AssignedNonce, Call, SignedTransaction, WithdrawalId};

/// A withdrawal as the sender needs it: what to pay, and what was signed for it so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The withdrawal.
    pub withdrawal_id: WithdrawalId,
    /// How often it was started: 1 plus the number of retries.
    pub generation: u32,
    /// The pool that pays, or the gate of the call.
    pub pool: String,
    /// The account that is paid.
    pub beneficiary: String,
    /// How much is paid.
    pub amount: String,
    /// The call, if it is no withdrawal from a pool.
    pub call: Option<Call>,
    /// Whether its cancellation was requested.
    pub cancel_requested: bool,
    /// When it was last requested that its fees be raised.
    pub speed_up_at: Option<Timestamp>,
    /// Whether it was stored before the database was restored, so that it may have been paid with a nonce that is not
    /// stored.
    pub is_restored: bool,
    /// Its nonce, if one is assigned. A nonce that did not pay belongs only to its own generation.
    pub nonce: Option<AssignedNonce>,
}

/// What a transaction on the chain does, as far as it can belong to a stored one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Terms {
    /// A withdrawal.
    Withdrawal {
        /// The pool that pays.
        pool: String,
        /// The account that is paid.
        beneficiary: String,
        /// How much is paid.
        amount: String,
    },
    /// A call.
    Call {
        /// The address that is called. `None`: a contract is created.
        to: Option<String>,
        /// How much is transferred, in wei.
        value: String,
        /// The data.
        data: String,
    },
}

impl Payment {
    /// Whether it was requested that its fees be raised after this transaction, the best one, was signed.
    pub fn must_speed_up(&self, best: &SignedTransaction) -> bool {
        self.speed_up_at.is_some_and(|asked_at| best.signed_at < asked_at)
    }

    /// What messages call it.
    pub const fn kind_name(&self) -> &'static str {
        match self.call {
            Some(_) => "transaction",
            None => "withdrawal",
        }
    }

    /// The gas limit that its request demands.
    pub fn own_gas_limit(&self) -> Option<u64> {
        self.call.as_ref()?.gas_limit
    }

    /// Its nonce, if it may still be used.
    pub fn open_nonce(&self) -> Option<&AssignedNonce> {
        self.nonce.as_ref().filter(|nonce| nonce.outcome.is_none())
    }
}
