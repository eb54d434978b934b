use std::{fmt, sync::Arc};

use grid_batch_core::{BatchError, BatchResult, ItemId, ScopeId, ServiceId};

use super::settlement::{Settled, settle_nonces};
use crate::{
    context::EvmContext,
    node::{BlockTag, NodeClient},
    nonce::{NonceObservation, check_chain, observe_nonce},
    scope::AccountScopeId,
};

/// Finds out whether an account has sent transactions that are not stored, before withdrawals are moved
/// from it: one of them may have paid a withdrawal, or may still do so.
pub struct EvmAccountCheck(pub(crate) Arc<EvmContext>);

impl EvmAccountCheck {
    /// Asks all nodes, and settles the account's nonces. `Some`: why it is not certain that everything that
    /// the account has sent is stored.
    ///
    /// `first` is the first batch that is to be moved, `signed` are those that have a nonce. Every node
    /// must answer.
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
        let nodes = self.0.nodes_for(&self.0.read_http, service_id, &first)?;
        let mut by_count = Vec::new();
        for node in nodes {
            let count = match self.count(&node, &scope).await? {
                Ok(count) => count,
                Err(uncertainty) => return Ok(Some(uncertainty)),
            };
            by_count.push((count, node));
        }
        // The node that shows most decides.
        by_count.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let nodes: Vec<NodeClient> = by_count.into_iter().map(|(_, node)| node).collect();
        for batch_id in signed {
            if let Some(uncertainty) = self.used_elsewhere(&nodes, &scope, *batch_id).await? {
                return Ok(Some(uncertainty));
            }
        }
        Ok(match settle_nonces(&self.0, &nodes, &scope).await? {
            Settled::All { .. } => None,
            Settled::NotYet(reason) | Settled::Undecided { note: reason } => Some(reason),
        })
    }

    /// Why a signed withdrawal makes it uncertain: another transaction, which may have paid another
    /// withdrawal, used its nonce.
    async fn used_elsewhere(
        &self,
        nodes: &[NodeClient],
        scope: &AccountScopeId,
        batch_id: ItemId,
    ) -> BatchResult<Option<String>> {
        let payment = self.0.store.payment(scope.service_id(), &batch_id).await?;
        let Some(assigned) = payment.and_then(|payment| payment.nonce) else { return Ok(None) };
        if assigned.outcome.is_some() {
            return Ok(None);
        }
        let best = observe_nonce(nodes, &self.0, scope.address(), &assigned).await?;
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
    async fn count(
        &self,
        node: &NodeClient,
        scope: &AccountScopeId,
    ) -> BatchResult<Result<u64, String>> {
        check_chain(node, &self.0).await?;
        let count = node.transaction_count(scope.address(), BlockTag::Latest).await?;
        let with_pending = node.transaction_count(scope.address(), BlockTag::Pending).await?;
        // Read last: a server that is running may have signed meanwhile, and it stores before it sends.
        let next = self.0.store.next_nonce(scope.service_id()).await?.unwrap_or_default();
        if with_pending > count.max(next) {
            let account = scope.address();
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
