use grid_batch_core::SubmissionAnswer;
use grid_batch_withdrawals::{AssignedNonce, NonceOutcome};

use super::{
    answer::{self, Step},
    attempt::SendAttempt,
};
use crate::{
    nonce::{NonceObservation, is_foreign_use_final},
    scope::AccountScopeId,
    settle::{UsedNonce, explain_used_nonce},
};

impl SendAttempt<'_> {
    /// Sends the withdrawal again with the nonce that it has. `None`: it has that nonce no longer.
    pub(super) async fn resend(&self, assigned: &AssignedNonce) -> Step<Option<SubmissionAnswer>> {
        let observation = NonceObservation::read(&self.node, self.admin, assigned).await;
        match observation.map_err(answer::node_failed)? {
            NonceObservation::Mined(_) => return Ok(Some(answer::accepted())),
            NonceObservation::UsedElsewhere => return self.replace_used_nonce(assigned).await,
            NonceObservation::Pending | NonceObservation::NotFound => {}
        }
        let signed = self.transaction_to_send(assigned).await?;
        self.send_lower_nonces(self.transaction_count().await?, assigned.nonce).await?;
        Ok(Some(self.broadcast(&signed).await))
    }

    /// Closes the nonce, but only after an operator's retry, and only if the use of the nonce by
    /// another program is final.
    async fn replace_used_nonce(&self, assigned: &AssignedNonce) -> Step<Option<SubmissionAnswer>> {
        let is_retry = assigned.generation < self.payment.generation;
        if !is_retry || !self.is_foreign_use_final(assigned).await? {
            return Err(answer::ambiguous(format_args!(
                "nonce {} was used by a transaction that was not signed by this server",
                assigned.nonce
            )));
        }
        match self.explain(assigned).await? {
            UsedNonce::Own => return Ok(Some(answer::accepted())),
            UsedNonce::Moved => return Ok(None),
            UsedNonce::Foreign => {}
        }
        let (store, outcome) = (&self.context.store, NonceOutcome::UsedElsewhere);
        let closed = store.close_nonce(self.service_id(), assigned.nonce, outcome).await;
        closed.map_err(answer::store_failed)?;
        Ok(None)
    }

    /// What the transaction that used the nonce is to the withdrawal.
    async fn explain(&self, assigned: &AssignedNonce) -> Step<UsedNonce> {
        let Some(hash) = assigned.foreign_hash else { return Ok(UsedNonce::Foreign) };
        let context = self.context;
        let nodes = context.nodes_for(&context.send_http, self.service_id(), &self.batch.batch_id);
        let nodes = nodes.map_err(answer::store_failed)?;
        let scope = AccountScopeId::new(context.chain_id, self.admin);
        let explained =
            explain_used_nonce(context, &nodes, &scope, &self.payment, assigned, hash.into());
        explained.await.map_err(answer::store_failed)
    }

    async fn is_foreign_use_final(&self, assigned: &AssignedNonce) -> Step<bool> {
        let context = self.context;
        let nodes = context.nodes_for(&context.send_http, self.service_id(), &self.batch.batch_id);
        let nodes = nodes.map_err(answer::store_failed)?;
        let is_final = is_foreign_use_final(&nodes, context, self.admin, assigned).await;
        is_final.map_err(answer::node_failed)
    }
}
