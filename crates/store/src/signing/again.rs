use grid_batch_withdrawals::{BatchAttempt, NewSignedTransaction, SignedTransaction};

use crate::{Store, StoreError};

impl Store {
    /// Keeps another transaction with the nonce that a withdrawal has.
    pub(super) fn keep_another(
        &self,
        turn: &BatchAttempt,
        signed: NewSignedTransaction,
    ) -> Result<Option<SignedTransaction>, StoreError> {
        self.pools.write()?.transaction(|connection| {
            let Some(numbered) = self.lock_turn(connection, turn)? else { return Ok(None) };
            let Some(open) = numbered.payment.nonce else { return Ok(None) };
            if open.nonce != signed.nonce || open.outcome.is_some() {
                return Ok(None);
            }
            let position = open.transactions.len();
            if let Some(same) = open.transactions.into_iter().find(|kept| kept.signed == signed) {
                return Ok(Some(same));
            }
            self.insert_signed(connection, &turn.service_id, signed, position).map(Some)
        })
    }
}
