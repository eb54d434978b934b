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
    /// Sends the transactions again that the node does not have: a node that was restarted has lost
    /// them, and a transaction that was dropped keeps those behind it from being mined.
    ///
    /// Those that were sent a moment ago are left alone: they may not have reached every node. The first
    /// one that must not be sent ends them, because those behind it cannot be mined before it.
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

    /// Its own attempt decides about one that is held or cancelled, or that bids more than a cap which was
    /// lowered.
    fn may_send(&self, following: &FollowingPayment, best: &SignedTransaction) -> bool {
        let cap = self.account.context.cap_at(&following.payment.pool);
        let is_below_cap = cap.is_some_and(|cap| best.signed.max_fee <= cap.wei());
        is_below_cap && !following.is_held && !following.payment.cancel_requested
    }

    fn is_due(&self, best: &SignedTransaction) -> bool {
        best.sent_at.is_none() || self.account.context.is_pending_too_long(best.signed.hash)
    }

    /// Sends transactions that are stored, in order of their nonces.
    pub(super) async fn broadcast(&self, signed: &[&NewSignedTransaction]) -> BatchResult<()> {
        let context = self.account.context;
        let now = context.monotonic();
        signed.iter().for_each(|signed| context.sent_times.record(signed.hash, now));
        let bytes: Vec<&[u8]> = signed.iter().map(|signed| &signed.bytes[..]).collect();
        let errors = self.node.send_all(&bytes).await.into_iter();
        // A node that has a transaction already has taken it.
        let errors = errors.map(|error| error.filter(|it| Refusal::of(it) != Refusal::Known));
        let sent: Vec<_> = signed.iter().zip(errors).collect();
        self.log_refused(&sent);
        let error = |error: Option<NodeError>| error.map(|error| error.to_string());
        let sent: Vec<_> = sent.into_iter().map(|(signed, it)| (signed.hash, error(it))).collect();
        context.store.mark_all_sent(&sent).await?;
        context.wake_up.sent(self.account.service_id());
        Ok(())
    }

    /// Warns of the first transaction that was not taken, once until all are.
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
