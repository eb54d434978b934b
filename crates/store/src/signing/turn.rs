use grid_batch_withdrawals::BatchAttempt;

use super::payment::PaymentWithSeq;
use crate::{Store, StoreError, connection::Connection, lanes::Lanes};

impl Store {
    /// The withdrawal of this attempt, if the attempt is still current. Locks the service's row: no
    /// other caller signs for the account until the transaction ends.
    pub(super) fn lock_for_signing(
        &self,
        connection: &mut Connection,
        attempt: &BatchAttempt,
    ) -> Result<Option<PaymentWithSeq>, StoreError> {
        self.lock_services(connection, [&attempt.service_id])?;
        let key = (attempt.service_id.clone(), attempt.batch_id);
        let lanes = Lanes::lock(connection, &[key.clone()].into())?;
        if !lanes.get(&key).is_some_and(|lane| lane.is_turn_of(attempt.attempt_id)) {
            return Ok(None);
        }
        self.find_payment(connection, &attempt.service_id, &attempt.batch_id)
    }
}
