use grid_batch_core::{BatchError, BatchResult};
use grid_batch_withdrawals::AssignedNonce;

use super::{
    finality::{Finality, confirmed_by},
    observation::NonceObservation,
};
use crate::{
    account::Account,
    node::{NodeClient, NodeError},
};

/// The observation with the highest weight, and the node that made it.
#[derive(Debug)]
pub(crate) struct BestObservation<'n, 'a> {
    pub(crate) node: &'n NodeClient,
    pub(crate) observation: NonceObservation<'a>,
    /// Whether a transaction of the nonce is mined and final.
    pub(crate) finality: Finality,
}

impl<'n> Account<'n> {
    /// Asks the nodes in turn about a nonce until one shows a final transaction. If none does, the observation with the
    /// highest weight is used, so that no node hides what another one shows.
    ///
    /// A node that fails is skipped. If all fail, the first error is returned.
    pub(crate) async fn observe<'a>(
        &self,
        assigned: &'a AssignedNonce,
    ) -> BatchResult<BestObservation<'n, 'a>> {
        let mut best: Option<BestObservation<'_, '_>> = None;
        let mut first_error = None;
        for node in self.nodes {
            match self.observe_at(node, assigned).await {
                Ok(seen) if seen.finality == Finality::Final => return Ok(seen),
                Ok(seen) if best.as_ref().is_none_or(|best| seen.outweighs(best)) => {
                    best = Some(seen);
                }
                Ok(_) => {}
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        let no_node = || BatchError::Unavailable("no node is configured".to_owned());
        best.ok_or_else(|| first_error.map_or_else(no_node, BatchError::from))
    }

    async fn observe_at<'a>(
        &self,
        node: &'n NodeClient,
        assigned: &'a AssignedNonce,
    ) -> Result<BestObservation<'n, 'a>, NodeError> {
        let observation = NonceObservation::read(node, self.address(), assigned).await?;
        let finality = match &observation {
            NonceObservation::Mined(mined) => {
                let block = mined.receipt.block;
                let finality = self.finality_at(node).of(block).await?;
                if finality == Finality::Final {
                    let confirmed_by = confirmed_by(block, self.context.options.confirmations);
                    self.context.highest_block.see(confirmed_by);
                }
                finality
            }
            // The node may be on another chain, where the account has other transactions.
            NonceObservation::UsedElsewhere => {
                self.check_chain(node).await?;
                Finality::Unconfirmed
            }
            NonceObservation::Pending | NonceObservation::NotFound => Finality::Unconfirmed,
        };
        Ok(BestObservation { node, observation, finality })
    }
}

impl BestObservation<'_, '_> {
    fn outweighs(&self, other: &Self) -> bool {
        self.observation.weight() > other.observation.weight()
    }
}
