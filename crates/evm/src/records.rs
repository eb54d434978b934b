use std::{fmt, sync::Arc};

use grid_batch_core::{BatchError, BatchResult, HeaderId, ServiceId};
use grid_batch_withdrawals::{
    BatchAttempt, NewSignedTransaction, NonceOutcome, Payment, SignedTransaction, SigningStore,
};
use tokio::task::spawn_blocking;

/// The store, for those who must not block their thread.
///
/// What is begun is done as a whole, though nobody waits for it any more.
#[derive(Clone)]
pub(crate) struct Records(Arc<dyn SigningStore>);

impl Records {
    pub(crate) fn new(store: Arc<dyn SigningStore>) -> Self {
        Self(store)
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn SigningStore) -> BatchResult<T> + Send + 'static,
    ) -> BatchResult<T> {
        let store = Arc::clone(&self.0);
        let ended = spawn_blocking(move || work(&*store)).await;
        ended.unwrap_or_else(|error| Err(BatchError::InternalError(format!("the store: {error}"))))
    }

    pub(crate) async fn payment(
        &self,
        service_id: &ServiceId,
        batch_id: HeaderId,
    ) -> BatchResult<Option<Payment>> {
        let service_id = service_id.clone();
        self.with(move |store| store.payment(&service_id, &batch_id)).await
    }

    pub(crate) async fn assign_nonce(
        &self,
        turn: &BatchAttempt,
        at_least: u64,
        mut sign: impl FnMut(u64) -> BatchResult<NewSignedTransaction> + Send + 'static,
    ) -> BatchResult<Option<SignedTransaction>> {
        let turn = turn.clone();
        self.with(move |store| store.assign_nonce(&turn, at_least, &mut sign)).await
    }

    pub(crate) async fn replace_transaction(
        &self,
        turn: &BatchAttempt,
        signed: NewSignedTransaction,
    ) -> BatchResult<Option<SignedTransaction>> {
        let turn = turn.clone();
        self.with(move |store| store.replace_transaction(&turn, signed)).await
    }

    pub(crate) async fn fill_nonce(
        &self,
        turn: &BatchAttempt,
        nonce: u64,
        mut sign: impl FnMut(u64) -> BatchResult<NewSignedTransaction> + Send + 'static,
    ) -> BatchResult<Option<SignedTransaction>> {
        let turn = turn.clone();
        self.with(move |store| store.fill_nonce(&turn, nonce, &mut sign)).await
    }

    pub(crate) async fn next_nonce(&self, service_id: &ServiceId) -> BatchResult<Option<u64>> {
        let service_id = service_id.clone();
        self.with(move |store| store.next_nonce(&service_id)).await
    }

    pub(crate) async fn transactions_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> BatchResult<Vec<NewSignedTransaction>> {
        let service_id = service_id.clone();
        self.with(move |store| store.transactions_from(&service_id, nonce)).await
    }

    pub(crate) async fn mark_sent(&self, hash: [u8; 32], error: Option<String>) -> BatchResult<()> {
        self.with(move |store| store.mark_sent(&hash, error.as_deref())).await
    }

    pub(crate) async fn note(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        note: Option<String>,
    ) -> BatchResult<()> {
        let service_id = service_id.clone();
        self.with(move |store| store.note(&service_id, nonce, note.as_deref())).await
    }

    pub(crate) async fn record_foreign_use(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        hash: [u8; 32],
    ) -> BatchResult<()> {
        let service_id = service_id.clone();
        self.with(move |store| store.record_foreign_use(&service_id, nonce, &hash)).await
    }

    pub(crate) async fn close_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        outcome: NonceOutcome,
    ) -> BatchResult<()> {
        let service_id = service_id.clone();
        self.with(move |store| store.close_nonce(&service_id, nonce, &outcome)).await
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Records(..)")
    }
}
