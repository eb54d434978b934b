use std::fmt;

use grid_batch_support::redact_url;

use super::other_nodes::ask_others;
use crate::{
    context::EvmContext,
    node::{BlockId, NodeClient, NodeError},
};

/// Nodes have another block at the height of a block that is final at one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dispute {
    /// The block that is final at one node.
    block: BlockId,
    /// The URL of that node, without secrets.
    shown_by: String,
    /// The URL of a node that has another block, without secrets.
    other: String,
}

impl fmt::Display for Dispute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, shown_by, other } = self;
        write!(
            f,
            "the nodes disagree about block {}: it is {} at {shown_by}, and another one at {other}; \
             waiting until they agree (a node on another branch has to be removed from ledger.urls)",
            block.number, block.hash
        )
    }
}

/// Asks the other nodes whether they have a block that is final at one node. `None`: no node has another
/// block at its height, or more nodes have this one than another.
///
/// A node that does not answer, or has no block at that height yet, counts for neither.
pub(crate) async fn find_dispute(
    context: &EvmContext,
    nodes: &[NodeClient],
    shown_by: &NodeClient,
    block: BlockId,
) -> Option<Dispute> {
    let chain_id = context.chain_id;
    let read = |node: NodeClient| async move { read_block(&node, chain_id, block.number).await };
    let shown = ask_others(context, nodes, shown_by, read).await;
    let agreeing = 1 + shown.iter().filter(|(_, it)| *it == block).count();
    let (other, _) = shown.iter().find(|(_, it)| *it != block)?;
    if agreeing > shown.len() + 1 - agreeing {
        return None;
    }
    Some(Dispute { block, shown_by: redact_url(shown_by.url()), other: redact_url(other.url()) })
}

/// The block at this height, if the node is on the chain and has one.
async fn read_block(
    node: &NodeClient,
    chain_id: u64,
    number: u64,
) -> Result<Option<BlockId>, NodeError> {
    let Some(block) = node.block(number).await? else { return Ok(None) };
    Ok((node.chain_id().await? == chain_id).then_some(block.id))
}
