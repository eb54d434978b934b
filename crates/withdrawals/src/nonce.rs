use grid_batch_core::Timestamp;
use serde::{Deserialize, Serialize};

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
    /// The hash of a transaction that was not signed here but was last seen on the chain with this nonce.
    pub foreign_hash: Option<[u8; 32]>,
    /// How the use of the nonce ended. `None`: it is still open.
    pub outcome: Option<NonceOutcome>,
    /// The transaction that used the nonce, if it is final.
    pub final_transaction: Option<FinalTransaction>,
    /// The transactions that were signed with it, the oldest first.
    pub transactions: Vec<SignedTransaction>,
}

impl AssignedNonce {
    /// The transaction to send: the filler if there is one, otherwise the payment with the highest fee, and the last of
    /// these if there are several.
    pub fn best(&self) -> Option<&SignedTransaction> {
        self.transactions.iter().max_by_key(|it| (it.signed.is_filler, it.signed.max_fee))
    }
}

/// A final transaction, as its receipt shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinalTransaction {
    /// Its hash.
    pub hash: [u8; 32],
    /// The number of its block.
    pub block: u64,
    /// The gas that it used, if the node reports it.
    pub gas_used: Option<u64>,
    /// The price that it paid per unit of gas, in wei, if the node reports it.
    pub gas_price: Option<u128>,
    /// The events that it emitted, if it is a call. The last ones of many are left out.
    pub logs: Vec<EventLog>,
}

/// An event that a contract emitted, in hex digits with `0x`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLog {
    /// The contract.
    pub address: String,
    /// The topics.
    pub topics: Vec<String>,
    /// The data.
    pub data: String,
}

/// How the use of a nonce ended. An outcome is final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NonceOutcome {
    /// The withdrawal was made; the pool gave it this id.
    Withdrawn {
        /// The pool's id, in decimal digits.
        withdrawal_id: String,
    },
    /// The call was executed.
    Executed {
        /// The address of the contract that it created.
        contract: Option<String>,
    },
    /// The transaction of the withdrawal succeeded, but the pool did not emit its event. An operator decides whether
    /// the withdrawal was made.
    WithoutEvent,
    /// It was mined, but the pool or another contract refused it.
    Reverted,
    /// A filler was mined, so the withdrawal was cancelled.
    Cancelled,
    /// The nonce was used for no open withdrawal: by a transaction that was not signed here, or by one about which an
    /// operator decided that it paid nothing.
    UsedElsewhere,
}
