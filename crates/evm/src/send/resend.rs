use grid_batch_core::ledger::{Outcome, SubmissionAnswer};
use grid_batch_withdrawals::{AssignedNonce, NonceOutcome};
use log::warn;

use super::{
    answer::{self, SendResult},
    attempt::SendAttempt,
};
use crate::{nonce::NonceObservation, settle::UsedNonce};

impl SendAttempt<'_> {
    /// Sends the withdrawal again with the nonce that it has. `None`: it no longer has that nonce.
    pub(super) async fn resend(
        &self,
        assigned: &AssignedNonce,
    ) -> SendResult<Option<SubmissionAnswer>> {
        let observation = NonceObservation::read(&self.node, self.admin, assigned).await;
        let is_pending = match observation.map_err(answer::node_failed)? {
            NonceObservation::Mined(_) => return Ok(Some(answer::accepted())),
            NonceObservation::UsedElsewhere => return self.replace_used_nonce(assigned).await,
            NonceObservation::Pending if self.was_sent_lately(assigned) => {
                return Ok(Some(answer::accepted()));
            }
            NonceObservation::Pending => true,
            NonceObservation::NotFound => false,
        };
        let count = self.transaction_count().await?;
        if !is_pending && self.is_mined_elsewhere(count, assigned).await? {
            return Ok(Some(answer::accepted()));
        }
        self.check_gap(count, assigned.nonce).await?;
        let signed = self.transaction_to_send(assigned, is_pending).await?;
        self.send_lower_nonces(count, assigned.nonce).await?;
        let answer = self.broadcast(&signed).await;
        // The node keeps the transaction that this one should have replaced.
        let keeps_earlier = is_pending && answer.outcome == Outcome::RefusedBatch;
        Ok(Some(if keeps_earlier { answer::accepted() } else { answer }))
    }

    /// Whether another node, which has more blocks, shows the withdrawal's transaction in one of them. If there is such
    /// a node and it does not show it, the attempt ends, because the transaction should be sent to that node.
    async fn is_mined_elsewhere(&self, count: u64, assigned: &AssignedNonce) -> SendResult<bool> {
        let (account, admin) = (self.account(), self.admin);
        let ahead = account.node_ahead(&self.node, count).await;
        let Some(node) = ahead else { return Ok(false) };
        match NonceObservation::read(node, admin, assigned).await {
            Ok(NonceObservation::Mined(_)) => Ok(true),
            _ => Err(answer::not_sent(format_args!(
                "the node lags behind: it has {count} transactions of {admin} in blocks, and another \
                 node has more"
            ))),
        }
    }

    /// Whether nothing needs to be sent now, because the withdrawal was signed ahead and the node has its transaction.
    fn was_sent_lately(&self, assigned: &AssignedNonce) -> bool {
        let lately = assigned.best().is_some_and(|best| {
            best.sent_at.is_some()
                && best.last_error.is_none()
                && !self.context.is_pending_too_long(best.signed.hash)
        });
        let is_first_attempt = self.batch.attempt_id.attempt == 1;
        is_first_attempt && lately && !self.payment.cancel_requested
    }

    /// Closes the nonce if a final foreign transaction used it, so that the withdrawal gets another nonce.
    async fn replace_used_nonce(
        &self,
        assigned: &AssignedNonce,
    ) -> SendResult<Option<SubmissionAnswer>> {
        let best = self.account().observe(assigned).await.map_err(answer::store_failed)?;
        if matches!(best.observation, NonceObservation::Mined(_)) {
            return Ok(Some(answer::accepted()));
        }
        match self.explain(assigned).await? {
            UsedNonce::Own => return Ok(Some(answer::accepted())),
            UsedNonce::Moved => return Ok(None),
            UsedNonce::Foreign => {}
            UsedNonce::NotFinal | UsedNonce::Undecided => {
                return Err(answer::ambiguous(format_args!(
                    "nonce {} was used by a transaction that was not signed by this server",
                    assigned.nonce
                )));
            }
        }
        let (store, outcome) = (&self.context.store, NonceOutcome::UsedElsewhere);
        let closed = store.close_nonce(self.service_id(), assigned.nonce, outcome).await;
        closed.map_err(answer::store_failed)?;
        warn!(
            service:% = self.service_id(), withdrawal:% = self.payment.withdrawal_id,
            nonce = assigned.nonce;
            "a transaction that is not stored used an assigned nonce; its owner gets another nonce unless it is cancelled"
        );
        Ok(None)
    }

    /// How the transaction that used the nonce relates to the withdrawal.
    async fn explain(&self, assigned: &AssignedNonce) -> SendResult<UsedNonce> {
        let Some(hash) = assigned.foreign_hash else { return Ok(UsedNonce::NotFinal) };
        let account = self.account();
        let explained = account.explain_used_nonce(&self.payment, assigned, hash.into()).await;
        explained.map_err(answer::store_failed)
    }
}
