use grid_batch_core::ledger::AttemptId;
use grid_batch_core::{BatchResult, ItemId, ServiceId, Timestamp};

use crate::{
    ClosedNonce, FollowingPayment, FollowingPayments, NewSignedTransaction, NonceOutcome, NonceUse,
    Payment, SignedTransaction, Terms, UnpaidWithdrawal, UnsettledNonces,
};

/// One attempt to submit a batch. Nothing is signed for an attempt that is no longer current.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchAttempt {
    /// The service that orders the batch.
    pub service_id: ServiceId,
    /// The batch.
    pub batch_id: ItemId,
    /// The attempt.
    pub attempt_id: AttemptId,
}

/// Returns the transaction that is signed with this nonce. It is called within a database transaction, so it must not
/// wait: a remote signer must sign before. After an error nothing is stored.
pub type SignFn<'a> = dyn FnMut(u64) -> BatchResult<NewSignedTransaction> + 'a;

/// Stores nonces and signed transactions before they are sent.
///
/// It guarantees that no withdrawal ever has two nonces that could both be mined as payments. Its
/// methods block.
pub trait SigningStore: Send + Sync {
    /// The withdrawal to which a batch belongs; `None` if it belongs to none.
    fn payment(&self, service_id: &ServiceId, batch_id: &ItemId) -> BatchResult<Option<Payment>>;

    /// Assigns the service's next nonce, which is not below `at_least`, calls `sign` with it, and
    /// stores both in one commit.
    ///
    /// `None`: nothing was stored, because the attempt is no longer current, the withdrawal is cancelled, it has a
    /// nonce that has paid or may still pay, or a nonce of the service is undecided.
    fn assign_nonce(
        &self,
        attempt: &BatchAttempt,
        at_least: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>>;

    /// Stores another transaction with the withdrawal's open nonce.
    ///
    /// `None`: nothing was stored, because the attempt is no longer current, or the transaction has another nonce
    /// than the withdrawal's open one.
    fn replace_transaction(
        &self,
        attempt: &BatchAttempt,
        signed: NewSignedTransaction,
    ) -> BatchResult<Option<SignedTransaction>>;

    /// Stores a filler for a nonce below the withdrawal's own: one that was never assigned, one that no
    /// payment may use any more, or the open one of a cancelled withdrawal.
    ///
    /// `None`: nothing was stored, because the attempt is no longer current, or a payment may still use the nonce.
    fn fill_nonce(
        &self,
        attempt: &BatchAttempt,
        nonce: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>>;

    /// At most `count` withdrawals after that of this batch, the oldest first.
    ///
    /// `None`: the batch is not the first of its service, or has not been sent.
    fn following_payments(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        count: usize,
    ) -> BatchResult<Option<FollowingPayments>>;

    /// Assigns the nonces of these transactions to the first unsigned of the following withdrawals, and
    /// stores the transactions, in one commit.
    ///
    /// `false`: nothing was stored, because something has changed: the attempt or the claim is no longer current,
    /// another nonce was assigned, a nonce is undecided, or a withdrawal was cancelled, held or signed.
    fn sign_following(
        &self,
        following: &FollowingPayments,
        signed: Vec<NewSignedTransaction>,
    ) -> BatchResult<bool>;

    /// Stores further transactions with open nonces of the withdrawal that is under way and of the
    /// following ones, in one commit.
    ///
    /// `false`: nothing was stored, because something has changed: the attempt or the claim is no longer current, or
    /// one of the nonces has an outcome or belongs to a withdrawal that was cancelled or held.
    fn replace_following(
        &self,
        following: &FollowingPayments,
        signed: Vec<NewSignedTransaction>,
    ) -> BatchResult<bool>;

    /// The nonce after the highest one that was assigned or filled. `None`: there is none yet.
    fn next_nonce(&self, service_id: &ServiceId) -> BatchResult<Option<u64>>;

    /// The transaction to send for each nonce from this one on, in order: the filler, or else the
    /// payment with the highest fee.
    ///
    /// Payments that were made are included, in case the chain has dropped them; payments that were
    /// reported as failed are not.
    fn transactions_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> BatchResult<Vec<NewSignedTransaction>>;

    /// The open withdrawals with open nonces from this one on, in order of their nonces.
    fn open_payments_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> BatchResult<Vec<FollowingPayment>>;

    /// Records that a transaction was sent, with the node's error if there was one.
    fn mark_sent(&self, hash: &[u8; 32], error: Option<&str>) -> BatchResult<()>;

    /// Records in one commit that transactions were sent, each with the node's error if there was one.
    fn mark_all_sent(&self, sent: &[([u8; 32], Option<String>)]) -> BatchResult<()> {
        sent.iter().try_for_each(|(hash, error)| self.mark_sent(hash, error.as_deref()))
    }

    /// Replaces the note about an open nonce.
    fn note(&self, service_id: &ServiceId, nonce: u64, note: Option<&str>) -> BatchResult<()>;

    /// Records which transaction, not signed here, the chain shows with an open nonce. A reorganization may remove it
    /// again, so the last recorded one counts.
    fn record_foreign_use(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        hash: &[u8; 32],
    ) -> BatchResult<()>;

    /// Records the final outcome of a nonce. Fails without a change if another outcome is recorded already.
    fn close_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        outcome: &NonceOutcome,
    ) -> BatchResult<()>;

    /// The highest block of the chain that was recorded. `None`: none was.
    fn highest_block(&self) -> BatchResult<Option<u64>>;

    /// Records a block of the chain, unless a higher one is recorded.
    fn record_highest_block(&self, number: u64) -> BatchResult<()>;

    /// Records the notes and the final outcomes of nonces in one commit. Returns how many of them are payments of
    /// withdrawals that had ended as failed.
    fn close_nonces(&self, service_id: &ServiceId, closed: &[ClosedNonce]) -> BatchResult<u64> {
        for ClosedNonce { nonce, note, outcome, .. } in closed {
            self.note(service_id, *nonce, Some(note))?;
            if let Some(outcome) = outcome {
                self.close_nonce(service_id, *nonce, outcome)?;
            }
        }
        Ok(0)
    }

    /// The nonces of the service that must be settled once the chain has used them.
    fn unsettled_nonces(&self, service_id: &ServiceId) -> BatchResult<UnsettledNonces>;

    /// A time before the first use of any nonce that is not stored: when the highest stored nonce was assigned or, if
    /// there is none, when the first withdrawal of the service was scheduled.
    fn unsettled_since(&self, service_id: &ServiceId) -> BatchResult<Option<Timestamp>>;

    /// When the first open withdrawal of the service was scheduled.
    fn first_open(&self, service_id: &ServiceId) -> BatchResult<Option<Timestamp>>;

    /// The pools of the service's withdrawals.
    fn pools(&self, service_id: &ServiceId) -> BatchResult<Vec<String>>;

    /// Whether a withdrawal of any service from this pool was made.
    fn has_paid(&self, pool: &str) -> BatchResult<bool>;

    /// The withdrawals of the service with these terms that are not known to be paid, in their order.
    fn unpaid_withdrawals(
        &self,
        service_id: &ServiceId,
        terms: &Terms,
    ) -> BatchResult<Vec<UnpaidWithdrawal>>;

    /// Stores what the chain used a nonce for. A nonce that was assigned to another withdrawal is moved to the one for
    /// which it was used, so the caller must know that the use is final.
    ///
    /// `used_at` is when the nonce was used, or a time before.
    ///
    /// `false`: nothing was stored, because the nonce has an outcome, or the withdrawal has ended or
    /// has another nonce with which it was or may be paid.
    fn settle_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        used_at: Timestamp,
        nonce_use: &NonceUse,
    ) -> BatchResult<bool>;
}
