use grid_batch_core::BatchResult;
use grid_batch_withdrawals::{
    FollowingPayment, FollowingPayments, NewSignedTransaction, SignedTransaction,
};
use log::{info, warn};

use super::look::LookAhead;
use crate::{
    account::AccountError,
    node::{AccountState, NodeError, Refusal},
};

impl LookAhead<'_> {
    /// Sends again the transactions that the node does not have. A node loses its pending transactions in a restart,
    /// and a dropped transaction keeps those after it from being mined.
    ///
    /// Transactions that were sent a moment ago are skipped, because they may not have reached every node yet. It stops
    /// at the first one that must not be sent, because those after it cannot be mined before it.
    pub(super) async fn send_missing(
        &self,
        following: &FollowingPayments,
        account: AccountState,
    ) -> Result<(), AccountError> {
        let Some(first) = account.pending.map(|pending| pending.max(account.mined)) else {
            return Ok(());
        };
        let missing: Vec<&NewSignedTransaction> = following
            .in_flight()
            .filter_map(|(it, nonce)| Some((it, nonce.best()?)))
            .filter(|(_, best)| best.signed.nonce >= first)
            .take_while(|(it, best)| self.may_send(it, best))
            .filter(|(_, best)| self.is_due(best))
            .map(|(_, best)| &best.signed)
            .collect();
        if first > self.head.nonce && !missing.is_empty() {
            info!(
                service:% = self.account.scope, first_nonce = first, transactions = missing.len();
                "the node does not have these transactions; they are sent"
            );
            self.broadcast(&missing).await?;
        }
        Ok(())
    }

    /// Whether it may be sent here. A withdrawal that is held or cancelled, or bids more than a lowered cap, is left to
    /// its own attempt.
    fn may_send(&self, following: &FollowingPayment, best: &SignedTransaction) -> bool {
        let cap = self.account.context.cap_for(&following.payment);
        let is_below_cap = cap.is_some_and(|cap| best.signed.max_fee <= cap.wei());
        is_below_cap && !following.is_held && !following.payment.cancel_requested
    }

    fn is_due(&self, best: &SignedTransaction) -> bool {
        best.sent_at.is_none() || self.account.context.is_pending_too_long(best.signed.hash)
    }

    /// Sends stored transactions in the order of their nonces.
    pub(super) async fn broadcast(&self, signed: &[&NewSignedTransaction]) -> BatchResult<()> {
        let context = self.account.context;
        let now = context.monotonic();
        signed.iter().for_each(|signed| context.sent_times.record(signed.hash, now));
        let bytes: Vec<&[u8]> = signed.iter().map(|signed| &signed.bytes[..]).collect();
        let errors = self.node.send_all(&bytes).await.into_iter();
        // If the node already has a transaction, it has accepted it.
        let errors = errors.map(|error| error.filter(|it| Refusal::of(it) != Refusal::Known));
        let sent: Vec<_> = signed.iter().zip(errors).collect();
        self.log_refused(&sent);
        let error = |error: Option<NodeError>| error.map(|error| error.to_string());
        let sent: Vec<_> = sent.into_iter().map(|(signed, it)| (signed.hash, error(it))).collect();
        context.store.mark_all_sent(&sent).await?;
        context.wake_up.sent(self.account.service_id());
        Ok(())
    }

    /// Logs a warning about the first transaction that was not accepted, once until all are accepted.
    fn log_refused(&self, sent: &[(&&NewSignedTransaction, Option<NodeError>)]) {
        let refused = sent.iter().find_map(|(signed, error)| Some((signed.nonce, error.as_ref()?)));
        let logged = &self.account.context.refused_ahead;
        if logged.changes(self.account.service_id(), refused.is_some())
            && let Some((nonce, error)) = refused
        {
            warn!(
                service:% = self.account.scope, nonce, error:%;
                "a transaction that was signed ahead was sent with an error; it is sent again"
            );
        }
    }
}
