use grid_batch_withdrawals::{CancelOutcome, WithdrawalId};

use crate::{Store, StoreError, connection::Connection};

impl Store {
    /// Notes that a person wants a withdrawal undone, if that can still be. Its end says whether it
    /// could.
    pub fn cancel_withdrawal(&self, id: &WithdrawalId) -> Result<CancelOutcome, StoreError> {
        self.pools.write()?.transaction(|connection| {
            let Some(story) = self.lock_withdrawal(connection, id)? else {
                return Ok(CancelOutcome::NotFound);
            };
            let state = story.batch.progress.state;
            if state.is_terminal() {
                return Ok(CancelOutcome::AlreadyEnded { state });
            }
            self.note_cancelled(connection, id)?;
            Ok(CancelOutcome::Requested { state })
        })
    }

    fn note_cancelled(
        &self,
        connection: &mut Connection,
        id: &WithdrawalId,
    ) -> Result<(), StoreError> {
        let statement = self
            .statement(
                "-- note_cancelled
                 update withdrawals set cancelled_at = ?
                 where withdrawal_id = ? and cancelled_at is null",
            )
            .long(self.now().as_micros())
            .bytes(id.as_bytes());
        connection.execute(&statement).map(drop)
    }
}
