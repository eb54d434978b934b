use grid_batch_withdrawals::BatchAttempt;

use super::payment::NumberedPayment;
use crate::{Store, StoreError, connection::Connection, lanes::Lanes};

impl Store {
    /// The withdrawal that is to be signed for, if it is still this submitter's turn: as it is now,
    /// and nobody else signs for its account until the transaction ends.
    pub(super) fn lock_turn(
        &self,
        connection: &mut Connection,
        turn: &BatchAttempt,
    ) -> Result<Option<NumberedPayment>, StoreError> {
        self.lock_services(connection, [&turn.service_id])?;
        let key = (turn.service_id.clone(), turn.batch_id);
        let lanes = Lanes::lock(connection, &[key.clone()].into())?;
        if !lanes.get(&key).is_some_and(|lane| lane.is_turn_of(turn.attempt_id)) {
            return Ok(None);
        }
        self.find_payment(connection, &turn.service_id, &turn.batch_id)
    }
}
