use alloy_primitives::{Address, B256};
use serde::Deserialize;

use super::{block::BlockId, quantity::Quantity};

/// A transaction that a node has, from any account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "TransactionJson")]
pub(crate) struct ChainTransaction {
    pub(crate) hash: B256,
    pub(crate) from: Address,
    pub(crate) nonce: u64,
    /// The block that contains it. `None`: it is pending.
    pub(crate) block: Option<BlockId>,
}

impl ChainTransaction {
    /// Whether it uses this nonce of this account.
    pub(crate) fn uses(&self, account: Address, nonce: u64) -> bool {
        self.from == account && self.nonce == nonce
    }
}

/// A transaction in a node's response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TransactionJson {
    hash: B256,
    from: Address,
    nonce: Quantity<u64>,
    block_number: Option<Quantity<u64>>,
    block_hash: Option<B256>,
}

impl From<TransactionJson> for ChainTransaction {
    fn from(json: TransactionJson) -> Self {
        let TransactionJson { hash, from, nonce: Quantity(nonce), block_number, block_hash } = json;
        let block = block_number.zip(block_hash);
        let block = block.map(|(Quantity(number), hash)| BlockId { number, hash });
        Self { hash, from, nonce, block }
    }
}
