use std::{collections::BTreeMap, ops::Range, time::Duration};

use alloy_primitives::{Address, B256};
use grid_batch_core::Timestamp;

use super::found_use::{FoundUse, UseKind};
use crate::{
    account::Account,
    node::{BlockTag, NodeClient, NodeError},
    nonce::search_blocks,
    pool::WITHDRAWAL_EVENT,
};

/// How far the clock of the database may be ahead of the chain's. A search begins this long before `since`.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(600);

/// The account whose nonces are searched, and its pools.
#[derive(Debug)]
pub(super) struct NonceSearch<'a> {
    pub(super) account: Account<'a>,
    pub(super) pools: Vec<Address>,
    /// A time before the first use of the nonces.
    pub(super) since: Timestamp,
}

impl NonceSearch<'_> {
    /// What the nodes show about these nonces, in order.
    ///
    /// Payments are found by the events of the pools, which nodes keep for long. Other transactions are found by the
    /// account's transaction count in past blocks.
    pub(super) async fn find_uses(&self, nonces: &[u64]) -> Result<Vec<FoundUse>, NodeError> {
        let mut found = BTreeMap::new();
        let paid = self.account.find(|node| self.find_paid(node, nonces)).await?;
        found.extend(paid.into_iter().flatten().map(|found| (found.nonce, found)));
        for nonce in nonces {
            if found.contains_key(nonce) {
                continue;
            }
            let shown = self.account.find(|node| self.find_by_count(node, *nonce)).await?;
            found.insert(*nonce, shown.unwrap_or_else(|| FoundUse::not_shown(*nonce)));
        }
        Ok(found.into_values().collect())
    }

    /// Whether a node shows the transaction with this nonce.
    pub(super) async fn shows(&self, nonce: u64) -> Result<bool, NodeError> {
        let found = self.find_uses(&[nonce]).await?;
        Ok(found.iter().any(|found| found.kind != UseKind::NotShown))
    }

    /// Whether the account has made a withdrawal with one of these nonces.
    pub(super) async fn finds_payments(&self, nonces: Range<u64>) -> Result<bool, NodeError> {
        let nonces: Vec<u64> = nonces.collect();
        let paid = self.account.find(|node| self.find_paid(node, &nonces)).await?;
        Ok(paid.is_some_and(|paid| !paid.is_empty()))
    }

    /// The highest transaction count of the account before `since`, if a node knows it.
    pub(super) async fn count_before(&self) -> Result<Option<u64>, NodeError> {
        self.account
            .find(async |node: &NodeClient| {
                let Some(before) = self.first_block(node).await?.checked_sub(1) else {
                    return Ok(Some(0));
                };
                match node.transaction_count(self.account.address(), BlockTag::Number(before)).await
                {
                    Ok(count) => Ok(Some(count)),
                    Err(NodeError::Rpc { .. }) => Ok(None),
                    Err(error) => Err(error),
                }
            })
            .await
    }

    /// The uses of these nonces by transactions with an event of a pool. `None`: the node does not show events.
    async fn find_paid(
        &self,
        node: &NodeClient,
        nonces: &[u64],
    ) -> Result<Option<Vec<FoundUse>>, NodeError> {
        self.account.check_chain(node).await?;
        let Some(hashes) = self.transactions_with_event(node).await? else { return Ok(None) };
        let mut uses = Vec::new();
        for hash in hashes {
            let Some(details) = node.transaction(hash).await? else { continue };
            let transaction = &details.transaction;
            if transaction.from == self.account.address()
                && nonces.contains(&transaction.nonce)
                && let Some(found) = FoundUse::read(node, &details, &self.pools).await?
            {
                uses.push(found);
            }
        }
        Ok(Some(uses))
    }

    async fn transactions_with_event(
        &self,
        node: &NodeClient,
    ) -> Result<Option<Vec<B256>>, NodeError> {
        if self.pools.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let (first, last) = (self.first_block(node).await?, node.block_number().await?);
        match node.transactions_with_event(&self.pools, WITHDRAWAL_EVENT, first, last).await {
            Ok(hashes) => Ok(Some(hashes)),
            Err(NodeError::Rpc { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The first block that was made at `since` or later, by binary search.
    async fn first_block(&self, node: &NodeClient) -> Result<u64, NodeError> {
        let (mut first, mut end) = (0, node.block_number().await?);
        while first < end {
            let middle = first + (end - first) / 2;
            match node.block(middle).await? {
                Some(block) if block.time.plus(CLOCK_TOLERANCE) >= self.since => end = middle,
                _ => first = middle + 1,
            }
        }
        Ok(first)
    }

    async fn find_by_count(
        &self,
        node: &NodeClient,
        nonce: u64,
    ) -> Result<Option<FoundUse>, NodeError> {
        self.account.check_chain(node).await?;
        let Some(hash) = search_blocks(node, self.account.address(), nonce).await? else {
            return Ok(None);
        };
        let Some(details) = node.transaction(hash).await? else { return Ok(None) };
        FoundUse::read(node, &details, &self.pools).await
    }
}
