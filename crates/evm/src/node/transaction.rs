use alloy_primitives::{Address, B256};
use serde::Deserialize;

use crate::node::{BlockId, quantity::Quantity};

/// A transaction that a node has, of whomever.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Answered")]
pub(crate) struct Transaction {
    pub(crate) hash: B256,
    pub(crate) from: Address,
    pub(crate) nonce: u64,
    /// Where it is in one.
    pub(crate) block: Option<BlockId>,
}

impl Transaction {
    /// It uses this nonce of this account.
    pub(crate) fn uses(&self, account: Address, nonce: u64) -> bool {
        self.from == account && self.nonce == nonce
    }
}

/// As nodes write it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    hash: B256,
    from: Address,
    nonce: Quantity<u64>,
    block_number: Option<Quantity<u64>>,
    block_hash: Option<B256>,
}

impl From<Answered> for Transaction {
    fn from(answered: Answered) -> Self {
        let Answered { hash, from, nonce: Quantity(nonce), block_number, block_hash } = answered;
        let place = block_number.zip(block_hash);
        let block = place.map(|(Quantity(number), hash)| BlockId { number, hash });
        Self { hash, from, nonce, block }
    }
}
