use grid_batch_core::{AttemptId, BatchResult, HeaderId, ServiceId};

use crate::{NewSignedTransaction, NonceOutcome, Payment, SignedTransaction};

/// Whose turn it is to sign: nothing is signed for a batch that is not with this submitter any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchAttempt {
    /// The service that orders the batch.
    pub service_id: ServiceId,
    /// The batch.
    pub batch_id: HeaderId,
    /// Which hand-over of it this is.
    pub attempt_id: AttemptId,
}

/// Signs a transaction with the given nonce.
pub type SignFn<'a> = dyn FnMut(u64) -> BatchResult<NewSignedTransaction> + 'a;

/// Keeps what is signed: a nonce and bytes, before they are sent, so that no withdrawal ever has two
/// nonces of which both could be spent.
///
/// Its methods block.
pub trait SigningStore: Send + Sync {
    /// How the withdrawal of a batch stands; `None`: the batch is of no withdrawal.
    fn payment(&self, service_id: &ServiceId, batch_id: &HeaderId) -> BatchResult<Option<Payment>>;

    /// Takes the service's next nonce, `at_least` this one, has it signed with, and stores both in
    /// one commit. `None`: it is not this submitter's turn any more, or the withdrawal has an open
    /// or a successful nonce already; nothing was kept.
    fn assign_nonce(
        &self,
        turn: &BatchAttempt,
        at_least: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>>;

    /// Stores another transaction with the open nonce of the withdrawal. `None` as above, or where
    /// the nonce is not its open one.
    fn replace_transaction(
        &self,
        turn: &BatchAttempt,
        signed: NewSignedTransaction,
    ) -> BatchResult<Option<SignedTransaction>>;

    /// Stores a transaction that only uses up a nonce before the withdrawal's own: one with which no
    /// payment may be made any more, or that was never taken. `None` as for the first, or where that
    /// is no such nonce.
    fn fill_nonce(
        &self,
        turn: &BatchAttempt,
        nonce: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>>;

    /// The nonce after the highest that was signed with; `None`: there is none.
    fn next_nonce(&self, service_id: &ServiceId) -> BatchResult<Option<u64>>;

    /// What to send from this nonce on, in order of nonces: of each what uses it up, where anything
    /// does, and else its best paid payment. Those of withdrawals that were made are among them, in
    /// case the chain has forgotten them; payments of those that came to nothing are not.
    fn transactions_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> BatchResult<Vec<NewSignedTransaction>>;

    /// Notes that a transaction was sent, and what the node said against it.
    fn mark_sent(&self, hash: &[u8; 32], error: Option<&str>) -> BatchResult<()>;

    /// Notes what was seen of an open nonce.
    fn note(&self, service_id: &ServiceId, nonce: u64, note: Option<&str>) -> BatchResult<()>;

    /// Notes which transaction, not signed here, the chain shows with a nonce that is not spent. It
    /// may yet vanish: the last one that was seen counts.
    fn record_foreign_use(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        hash: &[u8; 32],
    ) -> BatchResult<()>;

    /// Writes down for good what became of a nonce. Where something else was written before, nothing
    /// changes, and that is an error.
    fn close_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        outcome: &NonceOutcome,
    ) -> BatchResult<()>;
}
