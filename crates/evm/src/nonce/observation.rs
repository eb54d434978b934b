use alloy_primitives::Address;
use grid_batch_withdrawals::{AssignedNonce, FinalTransaction, NewSignedTransaction};

use super::finality::confirmed_by;
use crate::node::{BlockTag, NodeClient, NodeError, TransactionReceipt};

/// What one node shows about an assigned nonce.
#[derive(Debug)]
pub(crate) enum NonceObservation<'a> {
    /// One of the nonce's transactions is in a block.
    Mined(MinedTransaction<'a>),
    /// The node has one of the nonce's transactions, but shows no receipt for it.
    Pending,
    /// The nonce is used, but the node has none of its transactions.
    UsedElsewhere,
    /// The nonce is free, and the node has none of its transactions.
    NotFound,
}

/// One of the nonce's transactions, with its receipt.
#[derive(Debug)]
pub(crate) struct MinedTransaction<'a> {
    pub(crate) signed: &'a NewSignedTransaction,
    pub(crate) receipt: TransactionReceipt,
}

impl<'a> NonceObservation<'a> {
    /// Asks a node about a nonce of this account.
    ///
    /// The transaction count is read first. If it does not cover the nonce, the nonce was not used, even if an outdated
    /// receipt says otherwise. If it does, and the transaction is ours, a receipt that is read afterwards shows it.
    pub(crate) async fn read(
        node: &NodeClient,
        admin: Address,
        assigned: &'a AssignedNonce,
    ) -> Result<Self, NodeError> {
        let count = node.transaction_count(admin, BlockTag::Latest).await?;
        let is_used = count > assigned.nonce;
        if is_used && let Some(mined) = find_mined(node, assigned).await? {
            return Ok(Self::Mined(mined));
        }
        if has_any_transaction(node, assigned).await? {
            return Ok(Self::Pending);
        }
        Ok(if is_used { Self::UsedElsewhere } else { Self::NotFound })
    }

    /// When nodes differ, the observation with the higher weight is used. A block outweighs a pending transaction,
    /// because a node that is cut off from the network keeps a transaction pending forever.
    pub(crate) fn weight(&self) -> u8 {
        match self {
            Self::Mined(_) => 3,
            Self::UsedElsewhere => 2,
            Self::Pending => 1,
            Self::NotFound => 0,
        }
    }
}

impl MinedTransaction<'_> {
    /// The report about it when it is final.
    pub(crate) fn report(&self) -> FinalTransaction {
        FinalTransaction {
            hash: self.signed.hash,
            block: self.receipt.block.number,
            gas_used: self.receipt.gas_used,
            gas_price: self.receipt.gas_price,
            logs: Vec::new(),
        }
    }

    /// The note that operators and clients see.
    pub(crate) fn note(&self, confirmations: u64) -> String {
        let block = self.receipt.block;
        let last = confirmed_by(block, confirmations);
        format!("mined in block {}, final with block {last}", block.number)
    }
}

/// Any of the transactions may be mined; it is usually the last one.
async fn find_mined<'a>(
    node: &NodeClient,
    assigned: &'a AssignedNonce,
) -> Result<Option<MinedTransaction<'a>>, NodeError> {
    for signed in assigned.transactions.iter().rev().map(|transaction| &transaction.signed) {
        if let Some(receipt) = node.receipt(signed.hash.into()).await? {
            return Ok(Some(MinedTransaction { signed, receipt }));
        }
    }
    Ok(None)
}

async fn has_any_transaction(
    node: &NodeClient,
    assigned: &AssignedNonce,
) -> Result<bool, NodeError> {
    for transaction in assigned.transactions.iter().rev() {
        if node.has_transaction(transaction.signed.hash.into()).await? {
            return Ok(true);
        }
    }
    Ok(false)
}
