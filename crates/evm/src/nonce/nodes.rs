use alloy_primitives::Address;
use grid_batch_core::{BatchError, BatchResult};
use grid_batch_withdrawals::AssignedNonce;

use super::{
    dispute::{Dispute, find_dispute},
    finality::{final_with, is_final},
    observation::NonceObservation,
};
use crate::{
    context::EvmContext,
    node::{NodeClient, NodeError},
};

/// The observation that counts most, and the node that made it.
#[derive(Debug)]
pub(crate) struct BestObservation<'a, 'n> {
    pub(crate) node: &'n NodeClient,
    pub(crate) observation: NonceObservation<'a>,
    /// Whether a transaction of the nonce is mined and has enough confirmations.
    pub(crate) is_final: bool,
    /// Why a transaction with enough confirmations at this node is not final all the same.
    pub(crate) dispute: Option<Dispute>,
}

impl<'a, 'n> BestObservation<'a, 'n> {
    async fn read(
        node: &'n NodeClient,
        context: &EvmContext,
        admin: Address,
        assigned: &'a AssignedNonce,
    ) -> Result<Self, NodeError> {
        let observation = NonceObservation::read(node, admin, assigned).await?;
        let is_final = match &observation {
            NonceObservation::Mined(mined) => {
                is_final(node, mined.receipt.block, context.confirmations).await?
            }
            // On another chain the account has other transactions.
            NonceObservation::UsedElsewhere => {
                check_chain(node, context).await?;
                false
            }
            NonceObservation::Pending | NonceObservation::NotFound => false,
        };
        Ok(Self { node, observation, is_final, dispute: None })
    }

    /// The same, but not final if other nodes have another block at the height of the transaction's.
    async fn compared_with(self, nodes: &[NodeClient], context: &EvmContext) -> Self {
        let NonceObservation::Mined(mined) = &self.observation else { return self };
        if !self.is_final {
            return self;
        }
        let block = mined.receipt.block;
        let dispute = find_dispute(context, nodes, self.node, block).await;
        if dispute.is_none() {
            context.highest_block.see(final_with(block, context.confirmations));
        }
        Self { is_final: dispute.is_none(), dispute, ..self }
    }

    fn outweighs(&self, other: &Self) -> bool {
        self.observation.weight() > other.observation.weight()
    }
}

/// Asks the nodes in turn about a nonce, until one shows a final transaction in a block that the others
/// do not contradict. Otherwise the
/// observation with the highest weight counts, so that no node hides what another one shows.
///
/// A node that fails is skipped. If all fail, the first error is returned.
pub(crate) async fn observe_nonce<'a, 'n>(
    nodes: &'n [NodeClient],
    context: &EvmContext,
    admin: Address,
    assigned: &'a AssignedNonce,
) -> BatchResult<BestObservation<'a, 'n>> {
    let mut best: Option<BestObservation<'_, '_>> = None;
    let mut first_error = None;
    for node in nodes {
        let seen = match BestObservation::read(node, context, admin, assigned).await {
            Ok(seen) => Ok(seen.compared_with(nodes, context).await),
            Err(error) => Err(error),
        };
        match seen {
            Ok(seen) if seen.is_final => return Ok(seen),
            Ok(seen) if best.as_ref().is_none_or(|best| seen.outweighs(best)) => best = Some(seen),
            Ok(_) => {}
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    let no_node = || BatchError::Unavailable("no node is configured".to_owned());
    best.ok_or_else(|| first_error.map_or_else(no_node, BatchError::from))
}

/// Asks the nodes in turn until one finds something.
///
/// A node that fails is skipped. If all fail, the first error is returned.
pub(crate) async fn find_at_any<'n, T, F>(
    nodes: &'n [NodeClient],
    find: impl Fn(&'n NodeClient) -> F,
) -> Result<Option<T>, NodeError>
where
    F: Future<Output = Result<Option<T>, NodeError>>,
{
    let (mut has_answered, mut first_error) = (false, None);
    for node in nodes {
        match find(node).await {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => has_answered = true,
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    first_error.filter(|_| !has_answered).map_or(Ok(None), Err)
}

/// An error if the node is on another chain.
pub(crate) async fn check_chain(node: &NodeClient, context: &EvmContext) -> Result<(), NodeError> {
    let (actual, expected) = (node.chain_id().await?, context.chain_id);
    if actual == expected {
        return Ok(());
    }
    let reason = format!("the node is on chain {actual}, expected chain {expected}");
    Err(NodeError::InvalidResponse(reason))
}
