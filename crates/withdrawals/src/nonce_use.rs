use grid_batch_core::Timestamp;

use crate::{NewSignedTransaction, WithdrawalId};

/// The nonces of an account that may have been used for transactions that are not stored, because the database may be
/// an older copy, or another program may use the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsettledNonces {
    /// The nonce after the highest stored one. `None`: none is stored. This nonce and all higher ones that the chain
    /// has used are unsettled.
    pub next: Option<u64>,
    /// Stored nonces without an outcome that belong to no withdrawal in progress, the lowest first.
    pub stored: Vec<UnsettledNonce>,
}

/// A stored nonce that is not settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsettledNonce {
    /// The nonce.
    pub nonce: u64,
    /// Why it cannot be decided what it was used for. `None`: it is not known to be undecided.
    pub undecided: Option<String>,
    /// Whether an operator decided to fill it. Such nonces do not count as missing.
    pub to_fill: bool,
    /// The hashes of the transactions that are stored for it.
    pub hashes: Vec<[u8; 32]>,
}

/// A withdrawal that is not known to be paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpaidWithdrawal {
    /// The withdrawal.
    pub id: WithdrawalId,
    /// When it was scheduled.
    pub created_at: Timestamp,
    /// Whether it is open. Otherwise it has failed.
    pub is_open: bool,
    /// Its nonce, if that has no outcome.
    pub nonce: Option<u64>,
}

/// What the chain used a nonce for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NonceUse {
    /// A transaction that was not stored calls the pool for this open withdrawal. The transaction is *adopted*: it is
    /// stored as if it had been signed for the withdrawal.
    Withdrawal {
        /// The withdrawal.
        id: WithdrawalId,
        /// The transaction.
        transaction: NewSignedTransaction,
    },
    /// It was used for no stored withdrawal. This is final.
    Elsewhere {
        /// The hash of the transaction, if it is known.
        hash: Option<[u8; 32]>,
        /// What is known about it, for operators.
        note: String,
    },
    /// It cannot be decided. Nothing is signed for the account until an operator decides.
    Undecided {
        /// The hash of the transaction, if it is known.
        hash: Option<[u8; 32]>,
        /// Why it cannot be decided, for operators.
        note: String,
    },
}
