use grid_batch_core::{BatchState, NewBatch};
use grid_batch_withdrawals::{RetryOutcome, WithdrawalDetails, WithdrawalId};

use super::batch_of;
use crate::{
    Store, StoreError, connection::Connection, insert::insert, stamps::Stamps, statement::Rows,
};

impl Store {
    /// Has a withdrawal tried anew that came to nothing, by another batch. Who asks twice at once
    /// begins it once.
    ///
    /// What was signed for it before is still known: as long as that may be paid, nothing else is
    /// signed.
    pub fn retry_withdrawal(&self, id: &WithdrawalId) -> Result<RetryOutcome, StoreError> {
        self.pools.write()?.transaction(|connection| {
            let Some(story) = self.lock_withdrawal(connection, id)? else {
                return Ok(RetryOutcome::NotFound);
            };
            let state = story.batch.progress.state;
            if state != BatchState::Invalid {
                return Ok(RetryOutcome::NotFailed { state });
            }
            let generation = story.generation + 1;
            let batch = batch_of(&story.withdrawal, generation);
            let batch_seq = self.queue(connection, &batch)?;
            self.start_generation(connection, id, generation, batch_seq)?;
            Ok(RetryOutcome::Scheduled { generation })
        })
    }

    /// The withdrawal as it stands, and stays until the transaction ends: nothing of its service is
    /// recorded or signed meanwhile.
    pub(super) fn lock_withdrawal(
        &self,
        connection: &mut Connection,
        id: &WithdrawalId,
    ) -> Result<Option<WithdrawalDetails>, StoreError> {
        let Some(found) = self.find_withdrawal(connection, id)? else { return Ok(None) };
        self.lock_services(connection, [&found.withdrawal.service_id])?;
        self.find_withdrawal(connection, id)
    }

    /// Puts a new batch at the end of its queue, and answers its number.
    fn queue(&self, connection: &mut Connection, batch: &NewBatch) -> Result<i64, StoreError> {
        let mut stamps = Stamps::reserve(connection, &[batch], self.now())?;
        let seqs = insert(connection, &[batch], &mut stamps)?;
        seqs.first().copied().ok_or_else(|| StoreError::corrupt("no number of a batch just queued"))
    }

    fn start_generation(
        &self,
        connection: &mut Connection,
        id: &WithdrawalId,
        generation: u32,
        batch_seq: i64,
    ) -> Result<(), StoreError> {
        let statement = self
            .statement(
                "-- start_generation
                 update withdrawals as w
                 set generation = x.generation, batch_seq = x.batch_seq, cancelled_at = null
                 from {x} where w.withdrawal_id = x.withdrawal_id",
            )
            .rows(
                Rows::default()
                    .bytes("withdrawal_id", [&id.as_bytes()[..]])
                    .long("generation", [i64::from(generation)])
                    .long("batch_seq", [batch_seq]),
            );
        connection.execute(&statement).map(drop)
    }
}
