use grid_batch_withdrawals::{BatchAttempt, NewSignedTransaction, SignedTransaction};

use crate::{Store, StoreError};

impl Store {
    /// Stores another transaction with the open nonce of the withdrawal.
    pub(super) fn replace_transaction(
        &self,
        attempt: &BatchAttempt,
        signed: NewSignedTransaction,
    ) -> Result<Option<SignedTransaction>, StoreError> {
        self.pools.write()?.transaction(|connection| {
            let Some(found) = self.lock_for_signing(connection, attempt)? else { return Ok(None) };
            let Some(assigned) = found.payment.nonce else { return Ok(None) };
            if assigned.nonce != signed.nonce || assigned.outcome.is_some() {
                return Ok(None);
            }
            let position = assigned.transactions.len();
            if let Some(same) =
                assigned.transactions.into_iter().find(|stored| stored.signed == signed)
            {
                return Ok(Some(same));
            }
            self.insert_transaction(connection, &attempt.service_id, signed, position).map(Some)
        })
    }
}
