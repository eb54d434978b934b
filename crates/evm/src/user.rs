use alloy_primitives::{Address, B256};
use grid_batch_withdrawals::AssignedNonce;

use crate::{
    asking::{check_chain, first_found},
    node::{BlockTag, Node, NodeError},
    shared::Shared,
};

/// So far back is looked at most, in the last step. Most nodes have forgotten by then how things were.
const FARTHEST: u64 = 1 << 16;

/// The hash of the transaction that used a nonce, where a node shows it.
pub(crate) async fn user_of(
    nodes: &[Node],
    shared: &Shared,
    admin: Address,
    open: &AssignedNonce,
) -> Result<Option<B256>, NodeError> {
    first_found(nodes, |node| user_at(node, shared, admin, open)).await
}

/// The one that was found before, while it is in a block, needs no search.
async fn user_at(
    node: &Node,
    shared: &Shared,
    admin: Address,
    open: &AssignedNonce,
) -> Result<Option<B256>, NodeError> {
    check_chain(node, shared).await?;
    if let Some(hash) = open.foreign_hash.map(B256::from)
        && node.transaction(hash).await?.is_some_and(|it| it.block.is_some())
    {
        return Ok(Some(hash));
    }
    found_in_blocks(node, admin, open.nonce).await
}

async fn found_in_blocks(
    node: &Node,
    admin: Address,
    nonce: u64,
) -> Result<Option<B256>, NodeError> {
    let Some(number) = block_that_used(node, admin, nonce).await? else { return Ok(None) };
    let transactions = node.transactions_in(number).await?;
    Ok(transactions.into_iter().find(|it| it.uses(admin, nonce)).map(|it| it.hash))
}

/// The block in which the account's count passes the nonce.
async fn block_that_used(
    node: &Node,
    admin: Address,
    nonce: u64,
) -> Result<Option<u64>, NodeError> {
    let latest = node.block_number().await?;
    let (mut used, mut step) = (latest, 1);
    let mut free = loop {
        if used == 0 || step > FARTHEST {
            return Ok(None);
        }
        let before = used.saturating_sub(step);
        match is_used(node, admin, nonce, before).await? {
            Some(true) => used = before,
            Some(false) => break before,
            None => return Ok(None),
        }
        step *= 2;
    };
    while used - free > 1 {
        let middle = free + (used - free) / 2;
        match is_used(node, admin, nonce, middle).await? {
            Some(true) => used = middle,
            Some(false) => free = middle,
            None => return Ok(None),
        }
    }
    Ok(Some(used))
}

/// Whether the nonce was used up to this block; `None`: the node has forgotten.
async fn is_used(
    node: &Node,
    admin: Address,
    nonce: u64,
    block: u64,
) -> Result<Option<bool>, NodeError> {
    match node.nonce_at(admin, BlockTag::Number(block)).await {
        Ok(count) => Ok(Some(count > nonce)),
        Err(NodeError::Rpc { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
