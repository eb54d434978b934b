use std::time::Duration;

use alloy_eips::BlockNumHash;
use alloy_primitives::B256;
use grid_batch_core::Timestamp;
use serde::Deserialize;

use super::{error::NodeError, quantity::Quantity};

/// A block of the branch that a node follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) id: BlockNumHash,
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
            id: BlockNumHash { number, hash: self.hash },
            parent_hash: self.parent_hash,
            time: Timestamp::default().plus(Duration::from_secs(seconds)),
            gas_limit: self.gas_limit.map(|Quantity(limit)| limit),
        }
    }
}
