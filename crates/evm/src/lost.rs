use alloy_primitives::Address;
use grid_batch_core::OpenNonce;

use crate::{
    node::{BlockTag, Node, NodeError},
    shared::Shared,
    sighting::Sighting,
};

/// Whether a nonce was used elsewhere for good, by the word of every node: none may be of another
/// chain, and no receipt escapes one that lags behind.
pub(crate) async fn is_lost(
    nodes: &[Node],
    shared: &Shared,
    admin: Address,
    open: &OpenNonce,
) -> Result<bool, NodeError> {
    for node in nodes {
        let is_ours = node.chain_id().await? == shared.chain_id;
        if !is_ours || !is_lost_at(node, admin, open, shared.confirmations).await? {
            return Ok(false);
        }
    }
    Ok(!nodes.is_empty())
}

/// So many blocks ago it was used already, and nothing is known of what was signed with it.
async fn is_lost_at(
    node: &Node,
    admin: Address,
    open: &OpenNonce,
    confirmations: u64,
) -> Result<bool, NodeError> {
    let latest = node.block_number().await?;
    let Some(final_block) = latest.saturating_add(1).checked_sub(confirmations) else {
        return Ok(false);
    };
    if node.nonce_at(admin, BlockTag::Number(final_block)).await? <= open.nonce {
        return Ok(false);
    }
    Ok(matches!(Sighting::at(node, admin, open).await?, Sighting::Elsewhere))
}
