use grid_batch_core::SubmissionAnswer;
use grid_batch_withdrawals::NewSignedTransaction;
use log::warn;

use crate::{
    bid::Bid,
    node::{BlockTag, NodeError},
    proposal::Proposal,
    revert::reverted,
    sender::{
        answer::{self, Step},
        task::Task,
    },
    transaction::{Draft, sign},
};

impl Task<'_> {
    /// Signs for the first time, when every gate is open: until then nothing is touched.
    pub(crate) async fn first(&self) -> Step<SubmissionAnswer> {
        self.key()?;
        let proposal = self.proposal()?;
        let bid = self.pass_price_gate(proposal.pool).await?;
        let gas_limit = self.simulate(&proposal).await?;
        self.pass_funds_gate(gas_limit, &bid).await?;
        let count = self.believed_count().await?;
        let signed = self.assign_nonce(count, bid, gas_limit, proposal).await?;
        self.send_before(count, signed.nonce).await?;
        Ok(self.broadcast(&signed).await)
    }

    /// Asks the pool what it would say, so that what it refuses costs no nonce; and how much gas
    /// to give it.
    async fn simulate(&self, Proposal { pool, data }: &Proposal) -> Step<u64> {
        if !self.node.has_code(*pool).await.map_err(answer::without_node)? {
            return Err(answer::rejected(format_args!("there is no pool at {pool}")));
        }
        let call = self.node.call(self.admin, *pool, data, BlockTag::Latest).await;
        call.map_err(simulation_failed)?;
        let estimate = self.node.estimate_gas(self.admin, *pool, data).await;
        let estimate = estimate.map_err(simulation_failed)?;
        // What comes before it in its block may make it dearer.
        Ok(estimate.saturating_add(estimate / 4))
    }

    /// How many transactions of the account the chain has, and never what only waits: the lowest
    /// nonce that may be free. Where it has more than were signed here, that must be final: what
    /// vanishes would leave a gap, and one wrong answer end the account.
    async fn believed_count(&self) -> Step<u64> {
        let count = self.count().await?;
        let next = self.shared.records.next_nonce(self.service_id()).await;
        if count <= next.map_err(answer::without_store)?.unwrap_or_default() {
            return Ok(count);
        }
        if self.final_count().await? != Some(count) {
            let reason = "the gas admin's key was used elsewhere; waiting until that is final";
            return Err(self.parked(reason));
        }
        warn!(
            service:% = self.service_id(), count;
            "the gas admin's last transaction was not signed here: somebody else may use its key"
        );
        Ok(count)
    }

    /// How many of them are so deep that they are believed.
    async fn final_count(&self) -> Step<Option<u64>> {
        let latest = self.node.block_number().await.map_err(answer::without_node)?;
        let last = latest.saturating_add(1).checked_sub(self.shared.confirmations);
        let Some(last) = last else { return Ok(None) };
        let count = self.node.nonce_at(self.admin, BlockTag::Number(last)).await;
        count.map(Some).map_err(answer::without_node)
    }

    async fn assign_nonce(
        &self,
        at_least: u64,
        bid: Bid,
        gas_limit: u64,
        Proposal { pool: to, data }: Proposal,
    ) -> Step<NewSignedTransaction> {
        let (key, chain_id) = (self.key()?.clone(), self.shared.chain_id);
        let sign = move |nonce| {
            let draft = Draft { chain_id, nonce, gas_limit, to, data: data.clone() };
            Ok(sign(&key, &draft, &bid))
        };
        self.stored(self.shared.records.assign_nonce(&self.turn, at_least, sign).await)
    }
}

fn simulation_failed(error: NodeError) -> SubmissionAnswer {
    match reverted(&error) {
        Some(reason) => answer::rejected(format_args!("the pool refuses the withdrawal: {reason}")),
        None => answer::without_node(error),
    }
}
