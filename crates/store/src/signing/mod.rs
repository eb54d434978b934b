//! Stores nonces and signed transactions before they are sent, so that no withdrawal ever has two
//! nonces that could both be mined. Signing locks the row of the service, so that only one caller
//! signs for an account at a time.

mod again;
mod best_paid;
mod error;
mod filler;
mod first;
mod notes;
mod payment;
pub(crate) mod rows;
pub(crate) mod signed;
mod spend;
mod turn;

pub use error::SigningError;

use grid_batch_core::{BatchResult, HeaderId, ServiceId};
use grid_batch_withdrawals::{
    BatchAttempt, NewSignedTransaction, NonceOutcome, Payment, SignFn, SignedTransaction,
    SigningStore,
};

use crate::Store;

impl SigningStore for Store {
    fn payment(&self, service_id: &ServiceId, batch_id: &HeaderId) -> BatchResult<Option<Payment>> {
        Ok(self.payment(service_id, batch_id)?)
    }

    fn assign_nonce(
        &self,
        attempt: &BatchAttempt,
        at_least: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.assign_nonce(attempt, at_least, sign)
    }

    fn replace_transaction(
        &self,
        attempt: &BatchAttempt,
        signed: NewSignedTransaction,
    ) -> BatchResult<Option<SignedTransaction>> {
        Ok(self.replace_transaction(attempt, signed)?)
    }

    fn fill_nonce(
        &self,
        attempt: &BatchAttempt,
        nonce: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.fill_nonce(attempt, nonce, sign)
    }

    fn next_nonce(&self, service_id: &ServiceId) -> BatchResult<Option<u64>> {
        Ok(self.next_nonce(service_id)?)
    }

    fn transactions_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> BatchResult<Vec<NewSignedTransaction>> {
        Ok(self.transactions_from(service_id, nonce)?)
    }

    fn mark_sent(&self, hash: &[u8; 32], error: Option<&str>) -> BatchResult<()> {
        Ok(self.mark_sent(hash, error)?)
    }

    fn note(&self, service_id: &ServiceId, nonce: u64, note: Option<&str>) -> BatchResult<()> {
        Ok(self.note(service_id, nonce, note)?)
    }

    fn record_foreign_use(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        hash: &[u8; 32],
    ) -> BatchResult<()> {
        Ok(self.record_foreign_use(service_id, nonce, hash)?)
    }

    fn close_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        outcome: &NonceOutcome,
    ) -> BatchResult<()> {
        Ok(self.close_nonce(service_id, nonce, outcome)?)
    }
}
