use std::collections::BTreeSet;

use grid_batch_core::BatchState;
use grid_batch_withdrawals::{CancelOutcome, WithdrawalDetails, WithdrawalId, WithdrawalState};

use super::retry::lock_withdrawal;
use crate::{
    batch::{Lane, lock_lanes, write_open},
    sql::{Connection, Statement, Store, StoreError, groups::LOCK_LIMIT},
};

/// Records that a withdrawal is to be cancelled if that is still possible. The end of its batch
/// shows whether it was.
///
/// A delay ends, and so does a hold that began because the ledger refused the payment: the
/// cancellation is another transaction.
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
            return Ok(CancelOutcome::AlreadyEnded { state: WithdrawalState::of(&details) });
        }
        mark_cancelled(store, connection, id)?;
        if state == BatchState::Delayed {
            end_delay(connection, &details)?;
        }
        if state.awaits_poller() {
            check_now(connection, &details)?;
        }
        Ok(CancelOutcome::Requested { state })
    })
}

fn end_delay(connection: &mut Connection, details: &WithdrawalDetails) -> Result<(), StoreError> {
    let batch = (details.batch.service_id.clone(), details.batch.batch_id);
    let mut lanes = lock_lanes(connection, &BTreeSet::from([batch]))?;
    lanes.retain(|_, lane| lane.end_delay());
    write_open(connection, &lanes.values().collect::<Vec<&Lane>>())
}

/// Makes the status of the batch due: the transaction that used its nonce may be the cancellation.
fn check_now(connection: &mut Connection, details: &WithdrawalDetails) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- check_cancelled
         update lanes set checked_at = null where service_id = ? and batch_id = ?",
    )
    .text(details.batch.service_id.as_str())
    .bytes(details.batch.batch_id.as_bytes());
    connection.execute(&statement).map(drop)
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
