use grid_batch_core::BatchState;
use grid_batch_withdrawals::WithdrawalId;

use crate::{Store, StoreError, connection::Connection};

/// What became of the wish to have a withdrawal undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It is noted. If nothing was signed, nothing will be; otherwise the chain decides which of two
    /// transactions counts.
    Noted {
        /// Where its batch stands.
        state: BatchState,
    },
    /// It has ended: nothing changed.
    Ended {
        /// How.
        state: BatchState,
    },
    /// There is no such withdrawal.
    NotFound,
}

impl Store {
    /// Notes that a person wants a withdrawal undone, if that can still be. Its end says whether it
    /// could.
    pub fn cancel_withdrawal(&self, id: &WithdrawalId) -> Result<Cancelled, StoreError> {
        self.pools.write()?.transaction(|connection| {
            let Some(story) = self.lock_withdrawal(connection, id)? else {
                return Ok(Cancelled::NotFound);
            };
            let state = story.batch.progress.state;
            if state.is_terminal() {
                return Ok(Cancelled::Ended { state });
            }
            self.note_cancelled(connection, id)?;
            Ok(Cancelled::Noted { state })
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
