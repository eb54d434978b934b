use std::{fmt, sync::Arc};

use grid_batch_core::{BatchError, BatchResult, ItemId, ServiceId, Timestamp};
use grid_batch_withdrawals::{
    BatchAttempt, ClosedNonce, FollowingPayments, NewSignedTransaction, NonceOutcome, NonceUse,
    Payment, SignedTransaction, SigningStore, UnpaidWithdrawal, UnsettledNonces,
};
use tokio::task::spawn_blocking;

use crate::settle::Terms;

/// A [`SigningStore`] for asynchronous callers: it runs on the threads for blocking work.
///
/// Dropping a future does not cancel an operation that has begun.
#[derive(Clone)]
pub(crate) struct AsyncSigningStore(Arc<dyn SigningStore>);

/// What became of a signed transaction that needs a nonce of its own.
#[derive(Debug)]
pub(crate) enum NonceAssignment {
    /// It is stored, and its nonce is assigned.
    Assigned(Box<SignedTransaction>),
    /// Nothing was stored: the attempt is no longer current.
    NotCurrent,
    /// Nothing was stored: another nonce is the next one.
    Other { next: u64 },
}

impl AsyncSigningStore {
    pub(crate) fn new(store: Arc<dyn SigningStore>) -> Self {
        Self(store)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn SigningStore) -> BatchResult<T> + Send + 'static,
    ) -> BatchResult<T> {
        let store = Arc::clone(&self.0);
        let result = spawn_blocking(move || work(&*store)).await;
        result.unwrap_or_else(|error| {
            Err(BatchError::InternalError(format!("the signing store failed: {error}")))
        })
    }

    pub(crate) async fn payment(
        &self,
        service_id: &ServiceId,
        batch_id: ItemId,
    ) -> BatchResult<Option<Payment>> {
        let service_id = service_id.clone();
        self.run(move |store| store.payment(&service_id, &batch_id)).await
    }

    pub(crate) async fn highest_block(&self) -> BatchResult<Option<u64>> {
        self.run(|store| store.highest_block()).await
    }

    pub(crate) async fn record_highest_block(&self, number: u64) -> BatchResult<()> {
        self.run(move |store| store.record_highest_block(number)).await
    }

    pub(crate) async fn next_nonce(&self, service_id: &ServiceId) -> BatchResult<Option<u64>> {
        let service_id = service_id.clone();
        self.run(move |store| store.next_nonce(&service_id)).await
    }

    /// Stores a signed transaction, if its nonce is the one to assign.
    pub(crate) async fn assign_nonce(
        &self,
        attempt: &BatchAttempt,
        at_least: u64,
        signed: NewSignedTransaction,
    ) -> BatchResult<NonceAssignment> {
        let attempt = attempt.clone();
        self.run(move |store| {
            let mut other = None;
            let mut signed_with = |nonce| match nonce == signed.nonce {
                true => Ok(signed.clone()),
                false => {
                    other = Some(nonce);
                    Err(BatchError::InternalError(format!("nonce {nonce} was not signed with")))
                }
            };
            let stored = store.assign_nonce(&attempt, at_least, &mut signed_with);
            match (stored, other) {
                (Ok(Some(stored)), _) => Ok(NonceAssignment::Assigned(Box::new(stored))),
                (Ok(None), _) => Ok(NonceAssignment::NotCurrent),
                (Err(_), Some(next)) => Ok(NonceAssignment::Other { next }),
                (Err(error), None) => Err(error),
            }
        })
        .await
    }

    pub(crate) async fn replace_transaction(
        &self,
        attempt: &BatchAttempt,
        signed: NewSignedTransaction,
    ) -> BatchResult<Option<SignedTransaction>> {
        let attempt = attempt.clone();
        self.run(move |store| store.replace_transaction(&attempt, signed)).await
    }

    pub(crate) async fn fill_nonce(
        &self,
        attempt: &BatchAttempt,
        filler: NewSignedTransaction,
    ) -> BatchResult<Option<SignedTransaction>> {
        let attempt = attempt.clone();
        self.run(move |store| store.fill_nonce(&attempt, filler.nonce, &mut |_| Ok(filler.clone())))
            .await
    }

    pub(crate) async fn following_payments(
        &self,
        service_id: &ServiceId,
        batch_id: ItemId,
        count: usize,
    ) -> BatchResult<Option<FollowingPayments>> {
        let service_id = service_id.clone();
        self.run(move |store| store.following_payments(&service_id, &batch_id, count)).await
    }

    pub(crate) async fn sign_following(
        &self,
        following: FollowingPayments,
        signed: Vec<NewSignedTransaction>,
    ) -> BatchResult<bool> {
        self.run(move |store| store.sign_following(&following, signed)).await
    }

    pub(crate) async fn replace_following(
        &self,
        following: FollowingPayments,
        signed: Vec<NewSignedTransaction>,
    ) -> BatchResult<bool> {
        self.run(move |store| store.replace_following(&following, signed)).await
    }

    pub(crate) async fn mark_all_sent(
        &self,
        sent: Vec<([u8; 32], Option<String>)>,
    ) -> BatchResult<()> {
        self.run(move |store| store.mark_all_sent(&sent)).await
    }

    pub(crate) async fn close_nonces(
        &self,
        service_id: &ServiceId,
        closed: Vec<ClosedNonce>,
    ) -> BatchResult<u64> {
        let service_id = service_id.clone();
        self.run(move |store| store.close_nonces(&service_id, &closed)).await
    }

    pub(crate) async fn transactions_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> BatchResult<Vec<NewSignedTransaction>> {
        let service_id = service_id.clone();
        self.run(move |store| store.transactions_from(&service_id, nonce)).await
    }

    pub(crate) async fn mark_sent(&self, hash: [u8; 32], error: Option<String>) -> BatchResult<()> {
        self.run(move |store| store.mark_sent(&hash, error.as_deref())).await
    }

    pub(crate) async fn note(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        note: Option<String>,
    ) -> BatchResult<()> {
        let service_id = service_id.clone();
        self.run(move |store| store.note(&service_id, nonce, note.as_deref())).await
    }

    pub(crate) async fn record_foreign_use(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        hash: [u8; 32],
    ) -> BatchResult<()> {
        let service_id = service_id.clone();
        self.run(move |store| store.record_foreign_use(&service_id, nonce, &hash)).await
    }

    pub(crate) async fn close_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        outcome: NonceOutcome,
    ) -> BatchResult<()> {
        let service_id = service_id.clone();
        self.run(move |store| store.close_nonce(&service_id, nonce, &outcome)).await
    }

    pub(crate) async fn unsettled_nonces(
        &self,
        service_id: &ServiceId,
    ) -> BatchResult<UnsettledNonces> {
        let service_id = service_id.clone();
        self.run(move |store| store.unsettled_nonces(&service_id)).await
    }

    pub(crate) async fn unsettled_since(
        &self,
        service_id: &ServiceId,
    ) -> BatchResult<Option<Timestamp>> {
        let service_id = service_id.clone();
        self.run(move |store| store.unsettled_since(&service_id)).await
    }

    pub(crate) async fn first_open(
        &self,
        service_id: &ServiceId,
    ) -> BatchResult<Option<Timestamp>> {
        let service_id = service_id.clone();
        self.run(move |store| store.first_open(&service_id)).await
    }

    pub(crate) async fn pools(&self, service_id: &ServiceId) -> BatchResult<Vec<String>> {
        let service_id = service_id.clone();
        self.run(move |store| store.pools(&service_id)).await
    }

    pub(crate) async fn has_paid(&self, pool: &str) -> BatchResult<bool> {
        let pool = pool.to_owned();
        self.run(move |store| store.has_paid(&pool)).await
    }

    pub(crate) async fn unpaid_withdrawals(
        &self,
        service_id: &ServiceId,
        terms: &Terms,
    ) -> BatchResult<Vec<UnpaidWithdrawal>> {
        let (service_id, terms) = (service_id.clone(), terms.clone());
        self.run(move |store| {
            let Terms { pool, beneficiary, amount } = &terms;
            store.unpaid_withdrawals(&service_id, pool, beneficiary, amount)
        })
        .await
    }

    pub(crate) async fn settle_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        used_at: Timestamp,
        nonce_use: NonceUse,
    ) -> BatchResult<bool> {
        let service_id = service_id.clone();
        self.run(move |store| store.settle_nonce(&service_id, nonce, used_at, &nonce_use)).await
    }
}

impl fmt::Debug for AsyncSigningStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AsyncSigningStore(..)")
    }
}
