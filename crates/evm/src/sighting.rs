use alloy_primitives::Address;
use grid_batch_withdrawals::{AssignedNonce, SignedTransaction};

use crate::{
    depth::final_with,
    node::{BlockTag, Node, NodeError, Receipt},
};

/// What a node shows of a nonce.
#[derive(Debug)]
pub(crate) enum Sighting<'a> {
    /// One of its transactions is in a block.
    Mined(Mined<'a>),
    /// The node has one of its transactions, and shows no receipt of it.
    Waiting,
    /// It was used, and the node knows nothing that was signed here.
    Elsewhere,
    /// The node does not know it.
    Gone,
}

/// A transaction in a block.
#[derive(Debug)]
pub(crate) struct Mined<'a> {
    pub(crate) transaction: &'a SignedTransaction,
    pub(crate) receipt: Receipt,
}

impl<'a> Sighting<'a> {
    /// Looks for a nonce of this account.
    ///
    /// The count comes first. What it does not count was not mined, whatever an old receipt says;
    /// what it counts of ours has a receipt afterwards.
    pub(crate) async fn at(
        node: &Node,
        admin: Address,
        open: &'a AssignedNonce,
    ) -> Result<Self, NodeError> {
        let is_used = node.nonce_at(admin, BlockTag::Latest).await? > open.nonce;
        if is_used && let Some(mined) = mined_at(node, open).await? {
            return Ok(Self::Mined(mined));
        }
        if is_known_at(node, open).await? {
            return Ok(Self::Waiting);
        }
        Ok(if is_used { Self::Elsewhere } else { Self::Gone })
    }

    /// How much the word of one node counts against that of another. What is in a block is more than
    /// what waits: a node that is cut off from the others lets it wait for ever.
    pub(crate) fn weight(&self) -> u8 {
        match self {
            Self::Mined(_) => 3,
            Self::Elsewhere => 2,
            Self::Waiting => 1,
            Self::Gone => 0,
        }
    }
}

impl Mined<'_> {
    /// What a person should know of it.
    pub(crate) fn note(&self, confirmations: u64) -> String {
        let block = self.receipt.block;
        let last = final_with(block, confirmations);
        format!("mined in block {}, final with block {last}", block.number)
    }
}

/// Any of the transactions may be the one; most often it is the last.
async fn mined_at<'a>(
    node: &Node,
    open: &'a AssignedNonce,
) -> Result<Option<Mined<'a>>, NodeError> {
    for transaction in open.transactions.iter().rev() {
        if let Some(receipt) = node.receipt(transaction.signed.hash.into()).await? {
            return Ok(Some(Mined { transaction, receipt }));
        }
    }
    Ok(None)
}

async fn is_known_at(node: &Node, open: &AssignedNonce) -> Result<bool, NodeError> {
    for transaction in open.transactions.iter().rev() {
        if node.knows(transaction.signed.hash.into()).await? {
            return Ok(true);
        }
    }
    Ok(false)
}
