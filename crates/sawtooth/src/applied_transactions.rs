//! Transactions of an unresolved batch that are in the chain.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::join_all;
use grid_batch_core::evidence::{Evidence, EvidenceReport, UnresolvedBatch};
use grid_batch_core::{BatchResult, Clock, ItemId, MonotonicTime};
use grid_batch_http::origin;
use grid_batch_support::{BoundedMap, lock};
use log::debug;

use crate::{
    in_chain::{InChain, is_in_chain},
    rest_client::RestClient,
};

/// How many batches are remembered.
const REMEMBERED: usize = 10_000;

/// About how many transactions of a batch each node is asked in one search.
const TRANSACTIONS_PER_SEARCH: usize = 20;

/// How long a transaction must have been in the chain without the batch, because a short fork may have contained it.
const LASTING_AFTER: Duration = Duration::from_secs(2);

/// Searches the chain for transactions of a batch, a few at a time.
pub(crate) struct TransactionSearches {
    clock: Arc<dyn Clock>,
    searches: Mutex<BoundedMap<ItemId, TransactionSearch>>,
}

/// What is known about the transactions of a batch.
#[derive(Debug, Clone, Copy, Default)]
struct TransactionSearch {
    /// The position of the transaction to ask about next.
    next: usize,
    /// A transaction that is in the chain while the batch is not, and since when.
    found: Option<(ItemId, MonotonicTime)>,
}

/// A transaction in the chain of a node.
pub(crate) struct AppliedTransaction {
    pub(crate) transaction_id: ItemId,
    pub(crate) node: String,
}

impl AppliedTransaction {
    /// The evidence that the batch can never be applied: the chain contains each transaction at most once, and it
    /// contains this one without the batch.
    pub(crate) fn never_applicable(&self) -> EvidenceReport {
        let Self { transaction_id, node } = self;
        let detail = format!(
            "its transaction {transaction_id} was applied with another batch, as the node {} reports; \
             the ledger can never apply this one",
            origin(node)
        );
        EvidenceReport::with_detail(Evidence::NeverApplicable, detail)
    }
}

impl TransactionSearches {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, searches: Mutex::new(BoundedMap::new(REMEMBERED)) }
    }

    /// A transaction of the batch that is in the chain of a node. Each call asks about the next transactions, or again
    /// about the one that was found.
    pub(crate) async fn find(
        &self,
        client: &RestClient,
        nodes: &[String],
        batch: &UnresolvedBatch,
    ) -> Option<AppliedTransaction> {
        let candidates = self.next_candidates(batch);
        let searches = nodes.iter().map(async |node| {
            let found = first_in_chain(client, node, &candidates).await;
            found.unwrap_or_else(|error| {
                debug!(error:% = error.at(&origin(node)); "cannot look for transactions at this node");
                None
            })
        });
        let results = join_all(searches).await;
        let mut found = nodes.iter().zip(results).filter_map(|(node, found)| {
            Some(AppliedTransaction { transaction_id: found?, node: node.clone() })
        });
        let found = found.next();
        if found.is_none() {
            self.update(batch, |search| search.found = None);
        }
        found
    }

    /// Whether the transaction has been in the chain without the batch for a while.
    pub(crate) fn confirm(&self, batch: &UnresolvedBatch, transaction_id: ItemId) -> bool {
        let now = self.clock.monotonic();
        self.update(batch, |search| {
            let first = search.found.filter(|(id, _)| *id == transaction_id);
            let (_, since) = *search.found.insert(first.unwrap_or((transaction_id, now)));
            now.since(since) >= LASTING_AFTER
        })
    }

    fn next_candidates(&self, batch: &UnresolvedBatch) -> Vec<ItemId> {
        let ids = &batch.transaction_ids;
        if ids.is_empty() {
            return Vec::new();
        }
        self.update(batch, |search| {
            if let Some((id, _)) = search.found {
                return vec![id];
            }
            let count = ids.len().min(TRANSACTIONS_PER_SEARCH);
            let first = search.next % ids.len();
            search.next = (first + count) % ids.len();
            ids.iter().cycle().skip(first).take(count).copied().collect()
        })
    }

    fn update<R>(
        &self,
        batch: &UnresolvedBatch,
        change: impl FnOnce(&mut TransactionSearch) -> R,
    ) -> R {
        change(lock(&self.searches).get_or_insert_with(&batch.batch_id, TransactionSearch::default))
    }
}

/// The first of these transactions that the node has in its chain.
async fn first_in_chain(
    client: &RestClient,
    node: &str,
    candidates: &[ItemId],
) -> BatchResult<Option<ItemId>> {
    for id in candidates {
        if is_in_chain(client, node, InChain::Transaction, &id.to_string()).await? {
            return Ok(Some(*id));
        }
    }
    Ok(None)
}
