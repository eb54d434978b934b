use std::sync::atomic::{AtomicUsize, Ordering};

use alloy_primitives::{Address, B256};
use grid_batch_withdrawals::AssignedNonce;

use super::finality::Finality;
use crate::{
    account::Account,
    node::{BlockTag, NodeClient, NodeError},
};

/// The longest step back in the search, in blocks. Most nodes keep the state of far fewer blocks.
const LONGEST_STEP: u64 = 1 << 16;

impl<'a> Account<'a> {
    /// Whether this transaction, which was not signed here, has used this nonce and is final at this many nodes. Nodes
    /// that are not used count as not showing it.
    ///
    /// If no node shows one of our transactions, this proves nothing: a node must show the foreign one.
    pub(crate) async fn is_foreign_use_final(
        &self,
        nonce: u64,
        hash: B256,
        agreeing: usize,
    ) -> Result<bool, NodeError> {
        let shown = &AtomicUsize::new(0);
        let find_last = |node| async move {
            let is_shown = self.shows_final_use(node, nonce, hash).await?;
            let before = shown.fetch_add(is_shown.into(), Ordering::Relaxed);
            Ok((is_shown && before + 1 >= agreeing).then_some(()))
        };
        Ok(self.find(find_last).await?.is_some())
    }

    async fn shows_final_use(
        &self,
        node: &'a NodeClient,
        nonce: u64,
        hash: B256,
    ) -> Result<bool, NodeError> {
        self.check_chain(node).await?;
        let found = node.transaction(hash).await?.map(|found| found.transaction);
        let found = found.filter(|found| found.uses(self.address(), nonce));
        let Some(block) = found.and_then(|found| found.block) else { return Ok(false) };
        Ok(self.finality_at(node).of(block).await? == Finality::Final)
    }

    /// The hash of the transaction that used the nonce, if a node shows it.
    pub(crate) async fn find_nonce_user(
        &self,
        assigned: &AssignedNonce,
    ) -> Result<Option<B256>, NodeError> {
        self.find(|node| self.find_nonce_user_at(node, assigned)).await
    }

    async fn find_nonce_user_at(
        &self,
        node: &NodeClient,
        assigned: &AssignedNonce,
    ) -> Result<Option<B256>, NodeError> {
        self.check_chain(node).await?;
        // While the transaction that was found earlier is in a block, no search is needed.
        if let Some(hash) = assigned.foreign_hash.map(B256::from)
            && node.transaction(hash).await?.is_some_and(|found| found.transaction.block.is_some())
        {
            return Ok(Some(hash));
        }
        search_blocks(node, self.address(), assigned.nonce).await
    }
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

/// The first block whose transaction count covers the nonce. It is found with doubling steps back and then a binary
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

/// Whether the nonce was used up to this block; `None` if the node has removed that state.
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
