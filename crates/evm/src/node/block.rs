use std::time::Duration;

use alloy_primitives::B256;
use grid_batch_core::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

use super::{error::NodeError, quantity::Quantity};

/// The block whose state a request reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockTag {
    /// The latest block.
    Latest,
    /// The next block, with the pending transactions that the node has.
    Pending,
    /// The block with this number.
    Number(u64),
}

impl Serialize for BlockTag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Latest => serializer.serialize_str("latest"),
            Self::Pending => serializer.serialize_str("pending"),
            Self::Number(number) => serializer.serialize_str(&format!("{number:#x}")),
        }
    }
}

/// Identifies a block. Several blocks can have the same number, on different branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockId {
    pub(crate) number: u64,
    pub(crate) hash: B256,
}

/// A block of the branch that a node follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) id: BlockId,
    pub(crate) parent_hash: B256,
    pub(crate) time: Timestamp,
    pub(crate) gas_limit: Option<u64>,
}

/// A block in a node's response. `T` is a transaction, or its hash.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockJson<T> {
    number: Quantity<u64>,
    hash: B256,
    parent_hash: B256,
    timestamp: Quantity<u64>,
    gas_limit: Option<Quantity<u64>>,
    pub(super) transactions: Vec<T>,
}

impl<T> BlockJson<T> {
    pub(super) fn check_number(self, expected: u64) -> Result<Self, NodeError> {
        let Quantity(actual) = self.number;
        if actual != expected {
            let reason = format!("it is about block {actual}, expected block {expected}");
            return Err(NodeError::InvalidResponse(reason));
        }
        Ok(self)
    }

    pub(super) fn into_block(self) -> Block {
        let (Quantity(number), Quantity(seconds)) = (self.number, self.timestamp);
        Block {
            id: BlockId { number, hash: self.hash },
            parent_hash: self.parent_hash,
            time: Timestamp::default().plus(Duration::from_secs(seconds)),
            gas_limit: self.gas_limit.map(|Quantity(limit)| limit),
        }
    }
}
