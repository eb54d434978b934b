use std::{fmt, sync::Arc};

use grid_batch_core::{BatchError, BatchResult, ItemId, ScopeId, ServiceId};

use super::settlement::Settled;
use crate::{
    account::Account,
    context::EvmContext,
    node::{BlockTag, NodeClient},
    nonce::NonceObservation,
    scope::AccountScopeId,
};

/// Finds out, before withdrawals are moved from an account, whether it has sent transactions that are not stored. One
/// of them may have paid a withdrawal, or may still do so.
pub struct EvmAccountCheck(pub(crate) Arc<EvmContext>);

impl EvmAccountCheck {
    /// Asks all nodes, and settles the account's nonces. `Some`: why it is not certain that all transactions of the
    /// account are stored.
    ///
    /// `first` is the first batch to be moved, and `signed` are those that have a nonce. Every node must answer.
    pub async fn uncertainty(
        &self,
        service_id: &ServiceId,
        first: ItemId,
        signed: &[ItemId],
    ) -> BatchResult<Option<String>> {
        let scope = AccountScopeId::from_service_id(service_id)
            .map_err(|error| BatchError::InternalError(error.to_string()))?;
        if self.0.store.payment(service_id, &first).await?.is_none() {
            return Ok(Some("the withdrawal was changed meanwhile".to_owned()));
        }
        let nodes = self.0.nodes_for(service_id, &first)?;
        let account = Account { context: &self.0, nodes: &nodes, scope: &scope };
        let mut by_count = Vec::new();
        for node in &nodes {
            match account.count_if_stored(node).await? {
                Ok(count) => by_count.push((count, node.duplicate())),
                Err(uncertainty) => return Ok(Some(uncertainty)),
            }
        }
        // The node that shows the most transactions decides.
        by_count.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let nodes: Vec<NodeClient> = by_count.into_iter().map(|(_, node)| node).collect();
        let account = Account { nodes: &nodes, ..account };
        for batch_id in signed {
            if let Some(uncertainty) = account.used_elsewhere(batch_id).await? {
                return Ok(Some(uncertainty));
            }
        }
        Ok(match account.settle_nonces().await? {
            Settled::All { .. } => None,
            Settled::NotYet(reason) | Settled::Undecided { note: reason } => Some(reason),
        })
    }
}

impl Account<'_> {
    /// Why a signed withdrawal makes it uncertain, which is the case if another transaction used its nonce: that one
    /// may have paid another withdrawal.
    async fn used_elsewhere(&self, batch_id: &ItemId) -> BatchResult<Option<String>> {
        let payment = self.context.store.payment(self.service_id(), batch_id).await?;
        let Some(assigned) = payment.and_then(|payment| payment.nonce) else { return Ok(None) };
        if assigned.outcome.is_some() {
            return Ok(None);
        }
        let best = self.observe(&assigned).await?;
        let is_used = matches!(best.observation, NonceObservation::UsedElsewhere);
        let nonce = assigned.nonce;
        Ok(is_used.then(|| {
            format!(
                "nonce {nonce} was used by a transaction that is not stored; wait until the server has \
                 found out what it did, or decide about the withdrawal that is held for it"
            )
        }))
    }

    /// How many transactions of the account are in blocks, if the node has no pending one that is not
    /// stored.
    async fn count_if_stored(&self, node: &NodeClient) -> BatchResult<Result<u64, String>> {
        self.check_chain(node).await?;
        let account = self.address();
        let count = node.transaction_count(account, BlockTag::Latest).await?;
        let with_pending = node.transaction_count(account, BlockTag::Pending).await?;
        // This is read last, because a running server may have signed meanwhile; it stores transactions before it sends
        // them.
        let next = self.context.store.next_nonce(self.service_id()).await?.unwrap_or_default();
        if with_pending > count.max(next) {
            return Ok(Err(format!(
                "a node has a pending transaction of {account} that is not stored; wait until it is mined"
            )));
        }
        Ok(Ok(count))
    }
}

impl fmt::Debug for EvmAccountCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvmAccountCheck").field("nodes", &self.0.nodes).finish_non_exhaustive()
    }
}
