use alloy_primitives::{Address, B256};
use grid_batch_withdrawals::AssignedNonce;

use crate::{
    asking::{check_chain, first_found},
    depth::is_final,
    node::{BlockId, Node, NodeError},
    shared::Shared,
};

/// Whether a nonce was used elsewhere for good. That nothing is seen of ours proves nothing: some node
/// of the chain is to show the transaction that used it, and deep enough.
pub(crate) async fn is_lost(
    nodes: &[Node],
    shared: &Shared,
    admin: Address,
    open: &AssignedNonce,
) -> Result<bool, NodeError> {
    let Some(foreign_hash) = open.foreign_hash.map(B256::from) else { return Ok(false) };
    let find = |node| final_use_at(node, shared, admin, open.nonce, foreign_hash);
    Ok(first_found(nodes, find).await?.is_some())
}

/// The block of the chain that has this transaction, with this nonce, and deep enough.
async fn final_use_at(
    node: &Node,
    shared: &Shared,
    admin: Address,
    nonce: u64,
    hash: B256,
) -> Result<Option<BlockId>, NodeError> {
    check_chain(node, shared).await?;
    let found = node.transaction(hash).await?.filter(|it| it.uses(admin, nonce));
    let Some(block) = found.and_then(|it| it.block) else { return Ok(None) };
    let is_final = is_final(node, block, shared.confirmations).await?;
    Ok(is_final.then_some(block))
}
