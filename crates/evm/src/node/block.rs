use alloy_primitives::B256;
use serde::{Deserialize, Serialize, Serializer};

use crate::node::{NodeError, Transaction, quantity::Quantity};

/// The block as of which a question is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockTag {
    /// The last one.
    Latest,
    /// The one of this number.
    Number(u64),
}

impl Serialize for BlockTag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Latest => serializer.serialize_str("latest"),
            Self::Number(number) => serializer.serialize_str(&format!("{number:#x}")),
        }
    }
}

/// Which block it is. Of one number there may be several, on branches of which one is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockId {
    pub(crate) number: u64,
    pub(crate) hash: B256,
}

/// A block of the branch that a node is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) id: BlockId,
    pub(crate) parent_hash: B256,
}

/// As nodes write it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answered<T> {
    number: Quantity<u64>,
    hash: B256,
    parent_hash: B256,
    transactions: Vec<T>,
}

impl<T> Answered<T> {
    fn check(self, number: u64) -> Result<Self, NodeError> {
        let Quantity(other) = self.number;
        if other != number {
            return Err(NodeError::Answer(format!("the block is {other}, and not {number}")));
        }
        Ok(self)
    }

    pub(super) fn block(self, asked: u64) -> Result<Block, NodeError> {
        let Self { number: Quantity(number), hash, parent_hash, .. } = self.check(asked)?;
        Ok(Block { id: BlockId { number, hash }, parent_hash })
    }
}

impl Answered<Transaction> {
    pub(super) fn transactions(self, asked: u64) -> Result<Vec<Transaction>, NodeError> {
        Ok(self.check(asked)?.transactions)
    }
}
