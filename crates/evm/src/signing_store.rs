use std::{fmt, sync::Arc};

use grid_batch_core::{BatchError, BatchResult, ItemId, ServiceId, Timestamp};
use grid_batch_support::BlockingWork;
use grid_batch_withdrawals::{
    BatchAttempt, ClosedNonce, FollowingPayment, FollowingPayments, NewSignedTransaction,
    NonceOutcome, NonceUse, Payment, SignedTransaction, SigningStore, Terms, UnpaidWithdrawal,
    UnsettledNonces,
};

/// How many operations of the signing store run at the same time.
const OPERATIONS: usize = 16;

/// A [`SigningStore`] for asynchronous callers. It runs on the threads for blocking work.
///
/// Dropping a future does not cancel an operation that has begun.
#[derive(Clone)]
pub(crate) struct AsyncSigningStore {
    store: Arc<dyn SigningStore>,
    operations: BlockingWork,
}

/// Forwards methods of [`SigningStore`]. The first arguments are borrowed and cloned; an argument after a second `;` is
/// passed by reference.
macro_rules! forwarded {
    ($($name:ident(
        $($borrowed:ident: &$key:ty),* $(; $($value:ident: $type:ty),+ $(; $last:ident: $last_type:ty)?)?
    ) -> $returned:ty;)*) => {$(
        pub(crate) async fn $name(
            &self, $($borrowed: &$key,)* $($($value: $type,)+ $($last: $last_type)?)?
        ) -> BatchResult<$returned> {
            $(let $borrowed = $borrowed.to_owned();)*
            self.run(move |store| store.$name($(&$borrowed,)* $($($value,)+ $(&$last)?)?)).await
        }
    )*};
}

impl AsyncSigningStore {
    forwarded! {
        payment(service_id: &ServiceId, batch_id: &ItemId) -> Option<Payment>;
        highest_block() -> Option<u64>;
        record_highest_block(; number: u64) -> ();
        next_nonce(service_id: &ServiceId) -> Option<u64>;
        replace_transaction(attempt: &BatchAttempt; signed: NewSignedTransaction)
            -> Option<SignedTransaction>;
        following_payments(service_id: &ServiceId, batch_id: &ItemId; count: usize)
            -> Option<FollowingPayments>;
        sign_following(following: &FollowingPayments; signed: Vec<NewSignedTransaction>) -> bool;
        replace_following(following: &FollowingPayments; signed: Vec<NewSignedTransaction>) -> bool;
        mark_all_sent(sent: &[([u8; 32], Option<String>)]) -> ();
        close_nonces(service_id: &ServiceId, closed: &[ClosedNonce]) -> u64;
        transactions_from(service_id: &ServiceId; nonce: u64) -> Vec<NewSignedTransaction>;
        open_payments_from(service_id: &ServiceId; nonce: u64) -> Vec<FollowingPayment>;
        unsettled_nonces(service_id: &ServiceId) -> UnsettledNonces;
        unsettled_since(service_id: &ServiceId) -> Option<Timestamp>;
        first_open(service_id: &ServiceId) -> Option<Timestamp>;
        pools(service_id: &ServiceId) -> Vec<String>;
        has_paid(pool: &str) -> bool;
        unpaid_withdrawals(service_id: &ServiceId, terms: &Terms) -> Vec<UnpaidWithdrawal>;
        record_foreign_use(service_id: &ServiceId; nonce: u64; hash: [u8; 32]) -> ();
        close_nonce(service_id: &ServiceId; nonce: u64; outcome: NonceOutcome) -> ();
        settle_nonce(service_id: &ServiceId; nonce: u64, used_at: Timestamp; nonce_use: NonceUse)
            -> bool;
    }

    pub(crate) fn new(store: Arc<dyn SigningStore>) -> Self {
        Self { store, operations: BlockingWork::new(OPERATIONS) }
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn SigningStore) -> BatchResult<T> + Send + 'static,
    ) -> BatchResult<T> {
        let store = Arc::clone(&self.store);
        let result = self.operations.run(move || work(&*store)).await;
        result.unwrap_or_else(|panic| Err(panic.into()))
    }

    /// Stores a signed transaction, if its nonce is the one to assign. `Ok(None)`: the attempt is no longer current.
    /// `Err`: another nonce is the next one.
    pub(crate) async fn assign_nonce(
        &self,
        attempt: &BatchAttempt,
        at_least: u64,
        signed: NewSignedTransaction,
    ) -> BatchResult<Result<Option<SignedTransaction>, u64>> {
        let attempt = attempt.clone();
        self.run(move |store| {
            let mut other = None;
            let mut signed_with = |nonce| {
                if nonce == signed.nonce {
                    Ok(signed.clone())
                } else {
                    other = Some(nonce);
                    Err(BatchError::InternalError(format!("nonce {nonce} was not signed with")))
                }
            };
            let stored = store.assign_nonce(&attempt, at_least, &mut signed_with);
            match (stored, other) {
                (Err(_), Some(next)) => Ok(Err(next)),
                (stored, _) => stored.map(Ok),
            }
        })
        .await
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

    pub(crate) async fn note(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        note: Option<String>,
    ) -> BatchResult<()> {
        let service_id = service_id.clone();
        self.run(move |store| store.note(&service_id, nonce, note.as_deref())).await
    }
}

impl fmt::Debug for AsyncSigningStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AsyncSigningStore(..)")
    }
}
