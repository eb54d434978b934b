use grid_batch_core::SubmissionAnswer;
use grid_batch_withdrawals::NewSignedTransaction;
use log::warn;

use super::{
    answer::{self, Step},
    attempt::SendAttempt,
    transaction::{TransactionDraft, sign},
};
use crate::{
    node::{BlockTag, NodeError, revert_reason},
    pool::PoolCall,
    price::Bid,
};

impl SendAttempt<'_> {
    /// Assigns a nonce, signs and sends. Nothing is stored until every gate is open.
    pub(super) async fn send_with_new_nonce(&self) -> Step<SubmissionAnswer> {
        self.key()?;
        let call = self.pool_call()?;
        let bid = self.pass_price_gate(call.pool).await?;
        let gas_limit = self.simulate(&call).await?;
        self.pass_funds_gate(gas_limit, &bid).await?;
        let count = self.trusted_transaction_count().await?;
        let signed = self.assign_nonce(count, bid, gas_limit, call).await?;
        self.send_lower_nonces(count, signed.nonce).await?;
        Ok(self.broadcast(&signed).await)
    }

    /// Simulates the call, so that a refusal of the pool costs no nonce, and returns the gas limit.
    async fn simulate(&self, PoolCall { pool, data }: &PoolCall) -> Step<u64> {
        if !self.node.has_code(*pool).await.map_err(answer::node_failed)? {
            return Err(answer::rejected(format_args!("there is no contract at the pool {pool}")));
        }
        let result = self.node.call(self.admin, *pool, data, BlockTag::Latest).await;
        result.map_err(simulation_failed)?;
        let estimate = self.node.estimate_gas(self.admin, *pool, data).await;
        let estimate = estimate.map_err(simulation_failed)?;
        // Transactions before it in the same block can raise what it needs.
        Ok(estimate.saturating_add(estimate / 4))
    }

    /// The number of the account's transactions in blocks: the lowest nonce that may be free.
    ///
    /// A count above what was signed here must be final. Otherwise a transaction that the chain drops
    /// would leave a gap, and one wrong response of a node would block the account.
    async fn trusted_transaction_count(&self) -> Step<u64> {
        let count = self.transaction_count().await?;
        let next = self.context.store.next_nonce(self.service_id()).await;
        if count <= next.map_err(answer::store_failed)?.unwrap_or_default() {
            return Ok(count);
        }
        if self.final_transaction_count().await? != Some(count) {
            let reason = "another program used the gas admin's key; waiting until its transaction \
                          is final";
            return Err(self.parked(reason));
        }
        warn!(
            service:% = self.service_id(), count;
            "the gas admin's last transaction was not signed by this server; another program may use its key"
        );
        Ok(count)
    }

    /// The transaction count as of the last final block.
    async fn final_transaction_count(&self) -> Step<Option<u64>> {
        let latest = self.node.block_number().await.map_err(answer::node_failed)?;
        let last = latest.saturating_add(1).checked_sub(self.context.confirmations);
        let Some(last) = last else { return Ok(None) };
        let count = self.node.transaction_count(self.admin, BlockTag::Number(last)).await;
        count.map(Some).map_err(answer::node_failed)
    }

    async fn assign_nonce(
        &self,
        at_least: u64,
        bid: Bid,
        gas_limit: u64,
        PoolCall { pool: to, data }: PoolCall,
    ) -> Step<NewSignedTransaction> {
        let (key, chain_id) = (self.key()?.clone(), self.context.chain_id);
        let sign = move |nonce| {
            let draft = TransactionDraft { chain_id, nonce, gas_limit, to, data: data.clone() };
            Ok(sign(&key, &draft, &bid))
        };
        self.stored(self.context.store.assign_nonce(&self.batch, at_least, sign).await)
    }
}

fn simulation_failed(error: NodeError) -> SubmissionAnswer {
    match revert_reason(&error) {
        Some(reason) => answer::rejected(format_args!("the pool refuses the withdrawal: {reason}")),
        None => answer::node_failed(error),
    }
}
