use alloy_primitives::Address;
use grid_batch_core::{OpenNonce, SignedTransaction};

use crate::node::{BlockTag, Node, NodeError, Receipt};

/// What a node shows of a nonce.
#[derive(Debug)]
pub(crate) enum Sighting<'a> {
    /// One of its transactions is in a block.
    Mined(Mined<'a>),
    /// The node has one of its transactions, and shows no receipt of it.
    Waiting,
    /// It was used, and not by a transaction that was signed here.
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
        open: &'a OpenNonce,
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

    /// What a person should know of it.
    pub(crate) fn note(&self, admin: Address, nonce: u64, confirmations: u64) -> Option<String> {
        match self {
            Self::Mined(mined) => {
                let last = mined.final_with(confirmations);
                let first = mined.receipt.block_number;
                Some(format!("mined in block {first}, final with block {last}"))
            }
            Self::Elsewhere => Some(format!(
                "nonce {nonce} of {admin} was used by a transaction that was not signed here"
            )),
            Self::Waiting | Self::Gone => None,
        }
    }
}

impl Mined<'_> {
    /// The block with which so many hold it that it is believed.
    pub(crate) fn final_with(&self, confirmations: u64) -> u64 {
        self.receipt.block_number.saturating_add(confirmations.saturating_sub(1))
    }
}

/// Any of the transactions may be the one; most often it is the last.
async fn mined_at<'a>(node: &Node, open: &'a OpenNonce) -> Result<Option<Mined<'a>>, NodeError> {
    for transaction in open.transactions.iter().rev() {
        if let Some(receipt) = node.receipt(transaction.signed.hash.into()).await? {
            return Ok(Some(Mined { transaction, receipt }));
        }
    }
    Ok(None)
}

async fn is_known_at(node: &Node, open: &OpenNonce) -> Result<bool, NodeError> {
    for transaction in open.transactions.iter().rev() {
        if node.knows(transaction.signed.hash.into()).await? {
            return Ok(true);
        }
    }
    Ok(false)
}
