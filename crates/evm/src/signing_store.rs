use std::{fmt, sync::Arc};

use grid_batch_core::{BatchError, BatchResult, HeaderId, ServiceId, Timestamp};
use grid_batch_withdrawals::{
    BatchAttempt, NewSignedTransaction, NonceOutcome, NonceUse, Payment, SignedTransaction,
    SigningStore, UnpaidWithdrawal, UnsettledNonces,
};
use tokio::task::spawn_blocking;

use crate::settle::Terms;

/// A [`SigningStore`] for asynchronous callers: it runs on the threads for blocking work.
///
/// Dropping a future does not cancel an operation that has begun.
#[derive(Clone)]
pub(crate) struct AsyncSigningStore(Arc<dyn SigningStore>);

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
        batch_id: HeaderId,
    ) -> BatchResult<Option<Payment>> {
        let service_id = service_id.clone();
        self.run(move |store| store.payment(&service_id, &batch_id)).await
    }

    pub(crate) async fn assign_nonce(
        &self,
        attempt: &BatchAttempt,
        at_least: u64,
        mut sign: impl FnMut(u64) -> BatchResult<NewSignedTransaction> + Send + 'static,
    ) -> BatchResult<Option<SignedTransaction>> {
        let attempt = attempt.clone();
        self.run(move |store| store.assign_nonce(&attempt, at_least, &mut sign)).await
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
        nonce: u64,
        mut sign: impl FnMut(u64) -> BatchResult<NewSignedTransaction> + Send + 'static,
    ) -> BatchResult<Option<SignedTransaction>> {
        let attempt = attempt.clone();
        self.run(move |store| store.fill_nonce(&attempt, nonce, &mut sign)).await
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

    pub(crate) async fn pools(&self, service_id: &ServiceId) -> BatchResult<Vec<String>> {
        let service_id = service_id.clone();
        self.run(move |store| store.pools(&service_id)).await
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
