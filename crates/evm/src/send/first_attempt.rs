use std::iter;

use grid_batch_core::SubmissionAnswer;
use grid_batch_withdrawals::NewSignedTransaction;

use super::{
    answer::{self, Step},
    attempt::SendAttempt,
    transaction::{TransactionDraft, sign},
};
use crate::{
    node::{BlockTag, NodeClient, NodeError, revert_reason},
    pool::PoolCall,
    price::Bid,
    scope::AccountScopeId,
    settle::{SettleError, Settled, settle_nonces},
};

impl SendAttempt<'_> {
    /// Assigns a nonce, signs and sends. Nothing is stored until every gate is open.
    ///
    /// `count` is the number of the account's transactions in blocks, all of which are settled: the
    /// lowest nonce that may be free.
    pub(super) async fn send_with_new_nonce(&self, count: u64) -> Step<SubmissionAnswer> {
        self.key()?;
        let call = self.pool_call()?;
        let bid = self.pass_price_gate(call.pool).await?;
        let gas_limit = self.simulate(&call).await?;
        self.pass_funds_gate(gas_limit, &bid).await?;
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

    /// Settles the nonces that the chain has used, and returns the number of the account's transactions
    /// in blocks.
    ///
    /// A count above what was signed here must be final. Otherwise a transaction that the chain drops
    /// would leave a gap, and one wrong response of a node would block the account.
    pub(super) async fn settle_nonces(&self, scope: &AccountScopeId) -> Step<u64> {
        let nodes = self.nodes()?;
        let settled = settle_nonces(self.context, &nodes, scope, &self.payment).await;
        match settled {
            Ok(Settled::All { count }) => Ok(count),
            Ok(Settled::NotYet(reason)) => Err(self.parked(reason)),
            Ok(Settled::Undecided { note }) => Err(answer::ambiguous(note)),
            Err(SettleError::Node(error)) => Err(answer::node_failed(error)),
            Err(SettleError::Store(error)) => Err(answer::store_failed(error)),
        }
    }

    /// The node of this attempt, and then the others.
    fn nodes(&self) -> Step<Vec<NodeClient>> {
        let context = self.context;
        let all = context.nodes_for(&context.send_http, self.service_id(), &self.batch.batch_id);
        let others = all.map_err(answer::store_failed)?;
        let others = others.into_iter().filter(|node| node.url() != self.node.url());
        let this = NodeClient::new(context.send_http.clone(), self.node.url());
        Ok(iter::once(this).chain(others).collect())
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
