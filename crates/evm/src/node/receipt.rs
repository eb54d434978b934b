use alloy_primitives::{Address, B256, Bytes};
use serde::{Deserialize, Deserializer, de::Error};

use crate::node::{BlockId, NodeError, quantity::Quantity};

/// What a transaction did when it was mined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// It did what it was to do.
    pub(crate) status: bool,
    pub(crate) block: BlockId,
    pub(crate) logs: Vec<Log>,
}

/// What a contract said while a transaction ran.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Log {
    pub(crate) address: Address,
    pub(crate) topics: Vec<B256>,
    pub(crate) data: Bytes,
}

/// As nodes write it. Some answer for what is in no block yet.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answered {
    transaction_hash: B256,
    #[serde(deserialize_with = "status")]
    status: bool,
    block_number: Option<Quantity<u64>>,
    block_hash: Option<B256>,
    logs: Vec<Log>,
}

impl Answered {
    /// The receipt of this transaction, where it is in a block.
    pub(super) fn of(self, hash: B256) -> Result<Option<Receipt>, NodeError> {
        if self.transaction_hash != hash {
            let other = self.transaction_hash;
            return Err(NodeError::Answer(format!("the receipt is of {other}, and not of {hash}")));
        }
        let Self { status, logs, block_number, block_hash, .. } = self;
        let Some((Quantity(number), hash)) = block_number.zip(block_hash) else { return Ok(None) };
        Ok(Some(Receipt { status, block: BlockId { number, hash }, logs }))
    }
}

fn status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Quantity::<u64>::deserialize(deserializer)? {
        Quantity(0) => Ok(false),
        Quantity(1) => Ok(true),
        Quantity(status) => Err(D::Error::custom(format!("{status} is no status of a receipt"))),
    }
}
