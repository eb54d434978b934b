use alloy_eips::BlockNumHash;
use alloy_primitives::{B256, Log};
use serde::{Deserialize, Deserializer, de::Error};

use super::{error::NodeError, quantity::Quantity};

/// The result of a transaction that is in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TransactionReceipt {
    /// The hash of the transaction.
    pub(crate) hash: B256,
    /// `false`: the transaction was reverted.
    pub(crate) succeeded: bool,
    pub(crate) block: BlockNumHash,
    pub(crate) logs: Vec<Log>,
    pub(crate) gas_used: Option<u64>,
    /// In wei per unit of gas.
    pub(crate) gas_price: Option<u128>,
}

/// A receipt in a node's response. Some nodes return one for a pending transaction, without a block.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TransactionReceiptJson {
    transaction_hash: B256,
    #[serde(rename = "status", deserialize_with = "status")]
    succeeded: bool,
    block_number: Option<Quantity<u64>>,
    block_hash: Option<B256>,
    logs: Vec<Log>,
    gas_used: Option<Quantity<u64>>,
    effective_gas_price: Option<Quantity<u128>>,
}

impl TransactionReceiptJson {
    /// The receipt of this transaction, if it is in a block.
    pub(super) fn into_receipt(
        self,
        expected: B256,
    ) -> Result<Option<TransactionReceipt>, NodeError> {
        if self.transaction_hash != expected {
            let actual = self.transaction_hash;
            let reason = format!("the receipt is for {actual}, expected {expected}");
            return Err(NodeError::InvalidResponse(reason));
        }
        let Self {
            succeeded, logs, block_number, block_hash, gas_used, effective_gas_price, ..
        } = self;
        let Some((Quantity(number), hash)) = block_number.zip(block_hash) else { return Ok(None) };
        Ok(Some(TransactionReceipt {
            hash: expected,
            succeeded,
            block: BlockNumHash { number, hash },
            logs,
            gas_used: gas_used.map(|Quantity(gas)| gas),
            gas_price: effective_gas_price.map(|Quantity(price)| price),
        }))
    }
}

fn status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Quantity::<u64>::deserialize(deserializer)? {
        Quantity(0) => Ok(false),
        Quantity(1) => Ok(true),
        Quantity(status) => Err(D::Error::custom(format!("invalid receipt status {status}"))),
    }
}
