use grid_batch_withdrawals::{CancelOutcome, WithdrawalId};

use super::retry::lock_withdrawal;
use crate::sql::{Connection, Statement, Store, StoreError, groups::LOCK_LIMIT};

/// Records that a withdrawal is to be cancelled if that is still possible. The end of its batch
/// shows whether it was.
pub(crate) fn cancel_withdrawal(
    store: &Store,
    id: &WithdrawalId,
) -> Result<CancelOutcome, StoreError> {
    store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        let Some(details) = lock_withdrawal(connection, id)? else {
            return Ok(CancelOutcome::NotFound);
        };
        let state = details.batch.progress.state;
        if state.is_terminal() {
            return Ok(CancelOutcome::AlreadyEnded { state });
        }
        mark_cancelled(store, connection, id)?;
        Ok(CancelOutcome::Requested { state })
    })
}

fn mark_cancelled(
    store: &Store,
    connection: &mut Connection,
    id: &WithdrawalId,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- cancel_withdrawal
         update withdrawals set cancelled_at = ?
         where withdrawal_id = ? and cancelled_at is null",
    )
    .long(store.now().as_micros())
    .bytes(id.as_bytes());
    connection.execute(&statement).map(drop)
}
