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

use grid_batch_core::{
    BatchResult, HeaderId, NewSigned, Payment, ServiceId, Sign, SignedTransaction, SigningStore,
    Spent, Turn,
};

use crate::Store;

impl SigningStore for Store {
    fn payment(&self, service_id: &ServiceId, batch_id: &HeaderId) -> BatchResult<Option<Payment>> {
        Ok(self.read_payment(service_id, batch_id)?)
    }

    fn sign_first(
        &self,
        turn: &Turn,
        at_least: u64,
        sign: &mut Sign<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.take_nonce(turn, at_least, sign)
    }

    fn sign_again(&self, turn: &Turn, signed: NewSigned) -> BatchResult<Option<SignedTransaction>> {
        Ok(self.keep_another(turn, signed)?)
    }

    fn sign_filler(
        &self,
        turn: &Turn,
        nonce: u64,
        sign: &mut Sign<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.fill_nonce(turn, nonce, sign)
    }

    fn next_nonce(&self, service_id: &ServiceId) -> BatchResult<Option<u64>> {
        Ok(self.read_next_nonce(service_id)?)
    }

    fn signed_from(&self, service_id: &ServiceId, nonce: u64) -> BatchResult<Vec<NewSigned>> {
        Ok(self.best_paid_from(service_id, nonce)?)
    }

    fn mark_sent(&self, hash: &[u8; 32], error: Option<&str>) -> BatchResult<()> {
        Ok(self.write_sent(hash, error)?)
    }

    fn note(&self, service_id: &ServiceId, nonce: u64, note: Option<&str>) -> BatchResult<()> {
        Ok(self.write_note(service_id, nonce, note)?)
    }

    fn note_use(&self, service_id: &ServiceId, nonce: u64, hash: &[u8; 32]) -> BatchResult<()> {
        Ok(self.write_use(service_id, nonce, hash)?)
    }

    fn spend(&self, service_id: &ServiceId, nonce: u64, spent: &Spent) -> BatchResult<()> {
        Ok(self.write_spent(service_id, nonce, spent)?)
    }
}
