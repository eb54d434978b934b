use alloy_primitives::{Address, B256};
use grid_batch_withdrawals::AssignedNonce;

use super::{
    dispute::find_dispute,
    finality::is_final,
    nodes::{check_chain, find_at_any},
};
use crate::{
    context::EvmContext,
    node::{BlockId, BlockTag, NodeClient, NodeError},
};

/// The longest step back in the search, in blocks. Most nodes keep the state of far fewer.
const LONGEST_STEP: u64 = 1 << 16;

/// Whether this transaction, which was not signed here, has used this nonce, with enough confirmations, at this many
/// nodes. Nodes that are not used count as those that do not show it.
///
/// That no node shows one of our transactions proves nothing: a node has to show the foreign one.
pub(crate) async fn is_foreign_use_final(
    nodes: &[NodeClient],
    context: &EvmContext,
    admin: Address,
    (nonce, hash): (u64, B256),
    agreeing: usize,
) -> Result<bool, NodeError> {
    let (mut shown, mut has_answered, mut first_error) = (0, false, None);
    for node in nodes {
        match final_block_of(node, context, admin, nonce, hash).await {
            Ok(Some(block)) if find_dispute(context, nodes, node, block).await.is_none() => {
                shown += 1;
                if shown >= agreeing {
                    return Ok(true);
                }
            }
            Ok(_) => has_answered = true,
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    first_error.filter(|_| !has_answered && shown == 0).map_or(Ok(false), Err)
}

/// The block of this transaction, if it uses the nonce and is final.
async fn final_block_of(
    node: &NodeClient,
    context: &EvmContext,
    admin: Address,
    nonce: u64,
    hash: B256,
) -> Result<Option<BlockId>, NodeError> {
    check_chain(node, context).await?;
    let found = node.transaction(hash).await?.filter(|found| found.uses(admin, nonce));
    let Some(block) = found.and_then(|found| found.block) else { return Ok(None) };
    let is_final = is_final(node, block, context.confirmations).await?;
    Ok(is_final.then_some(block))
}

/// The hash of the transaction that used the nonce, if a node shows it.
pub(crate) async fn find_nonce_user(
    nodes: &[NodeClient],
    context: &EvmContext,
    admin: Address,
    assigned: &AssignedNonce,
) -> Result<Option<B256>, NodeError> {
    find_at_any(nodes, |node| find_nonce_user_at(node, context, admin, assigned)).await
}

async fn find_nonce_user_at(
    node: &NodeClient,
    context: &EvmContext,
    admin: Address,
    assigned: &AssignedNonce,
) -> Result<Option<B256>, NodeError> {
    check_chain(node, context).await?;
    // The transaction that was found before needs no search while it is in a block.
    if let Some(hash) = assigned.foreign_hash.map(B256::from)
        && node.transaction(hash).await?.is_some_and(|found| found.block.is_some())
    {
        return Ok(Some(hash));
    }
    search_blocks(node, admin, assigned.nonce).await
}

pub(crate) async fn search_blocks(
    node: &NodeClient,
    admin: Address,
    nonce: u64,
) -> Result<Option<B256>, NodeError> {
    let Some(number) = block_that_used(node, admin, nonce).await? else { return Ok(None) };
    let transactions = node.transactions_in(number).await?;
    Ok(transactions.into_iter().find(|it| it.uses(admin, nonce)).map(|it| it.hash))
}

/// The first block whose transaction count covers the nonce: steps back that double, then a binary
/// search.
async fn block_that_used(
    node: &NodeClient,
    admin: Address,
    nonce: u64,
) -> Result<Option<u64>, NodeError> {
    let latest = node.block_number().await?;
    let (mut used, mut step) = (latest, 1);
    let mut free = loop {
        if used == 0 || step > LONGEST_STEP {
            return Ok(None);
        }
        let before = used.saturating_sub(step);
        match is_used_at(node, admin, nonce, before).await? {
            Some(true) => used = before,
            Some(false) => break before,
            None => return Ok(None),
        }
        step *= 2;
    };
    while used - free > 1 {
        let middle = free + (used - free) / 2;
        match is_used_at(node, admin, nonce, middle).await? {
            Some(true) => used = middle,
            Some(false) => free = middle,
            None => return Ok(None),
        }
    }
    Ok(Some(used))
}

/// Whether the nonce was used up to this block; `None` if the node no longer has that state.
async fn is_used_at(
    node: &NodeClient,
    admin: Address,
    nonce: u64,
    block: u64,
) -> Result<Option<bool>, NodeError> {
    match node.transaction_count(admin, BlockTag::Number(block)).await {
        Ok(count) => Ok(Some(count > nonce)),
        Err(NodeError::Rpc { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
