//! What is signed, before it is sent: so that no withdrawal ever has two nonces of which both could
//! be spent. Whoever signs has the row of the service locked, and so is alone with its account.

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
        Ok(self.read_payment(service_id, batch_id)?)
    }

    fn assign_nonce(
        &self,
        turn: &BatchAttempt,
        at_least: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.take_nonce(turn, at_least, sign)
    }

    fn replace_transaction(
        &self,
        turn: &BatchAttempt,
        signed: NewSignedTransaction,
    ) -> BatchResult<Option<SignedTransaction>> {
        Ok(self.keep_another(turn, signed)?)
    }

    fn fill_nonce(
        &self,
        turn: &BatchAttempt,
        nonce: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.fill_nonce(turn, nonce, sign)
    }

    fn next_nonce(&self, service_id: &ServiceId) -> BatchResult<Option<u64>> {
        Ok(self.read_next_nonce(service_id)?)
    }

    fn transactions_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> BatchResult<Vec<NewSignedTransaction>> {
        Ok(self.best_paid_from(service_id, nonce)?)
    }

    fn mark_sent(&self, hash: &[u8; 32], error: Option<&str>) -> BatchResult<()> {
        Ok(self.write_sent(hash, error)?)
    }

    fn note(&self, service_id: &ServiceId, nonce: u64, note: Option<&str>) -> BatchResult<()> {
        Ok(self.write_note(service_id, nonce, note)?)
    }

    fn record_foreign_use(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        hash: &[u8; 32],
    ) -> BatchResult<()> {
        Ok(self.write_use(service_id, nonce, hash)?)
    }

    fn close_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        spent: &NonceOutcome,
    ) -> BatchResult<()> {
        Ok(self.write_spent(service_id, nonce, spent)?)
    }
}
