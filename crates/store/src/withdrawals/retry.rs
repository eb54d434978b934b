use grid_batch_core::NewBatch;
use grid_batch_withdrawals::{RetryOutcome, WithdrawalDetails, WithdrawalId, WithdrawalState};

use super::{batch_of, details::find_withdrawal, new_withdrawals::amount_of};
use crate::{
    batch::{PaymentSums, fill_beside_parked, lock_services},
    intake::{CreatedAtAllocator, insert},
    sql::{Connection, Rows, Statement, Store, StoreError, groups::LOCK_LIMIT},
};

/// Starts the next generation of a failed withdrawal with another batch. Of two calls at the same
/// time, one starts it.
///
/// Transactions of earlier generations stay stored: while one of them may be paid, no other is
/// signed.
pub(crate) fn retry_withdrawal(
    store: &Store,
    id: &WithdrawalId,
) -> Result<RetryOutcome, StoreError> {
    store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        let Some(details) = lock_withdrawal(connection, id)? else {
            return Ok(RetryOutcome::NotFound);
        };
        let state = WithdrawalState::of(&details);
        if state != WithdrawalState::Failed {
            return Ok(RetryOutcome::NotFailed { state });
        }
        let (limits, pools) = (&store.payment_limits, [details.withdrawal.pool.as_str()].into());
        let mut sums = PaymentSums::lock(connection, limits, pools, store.now())?;
        let (pool, amount) = (&details.withdrawal.pool, amount_of(&details.withdrawal)?);
        if let Err(error) = sums.check(limits, pool, &amount) {
            return Ok(RetryOutcome::PaymentLimit(error));
        }
        sums.add(pool, &amount);
        sums.write(connection)?;
        let generation = details.generation + 1;
        let batch = batch_of(&details.withdrawal, generation);
        let batch_seq = enqueue(store, connection, &batch)?;
        start_generation(connection, id, generation, (batch_seq, sums.step()))?;
        fill_beside_parked(connection, [&batch.service_id], store.now())?;
        Ok(RetryOutcome::Scheduled { generation })
    })
}

/// The details of a withdrawal, with its service locked until the end of the transaction: nothing of
/// the service is recorded or signed meanwhile.
pub(super) fn lock_withdrawal(
    connection: &mut Connection,
    id: &WithdrawalId,
) -> Result<Option<WithdrawalDetails>, StoreError> {
    let Some(found) = find_withdrawal(connection, id)? else { return Ok(None) };
    lock_services(connection, [&found.withdrawal.service_id])?;
    find_withdrawal(connection, id)
}

/// Adds a batch to the end of its queue, and returns its `seq`.
fn enqueue(
    store: &Store,
    connection: &mut Connection,
    batch: &NewBatch,
) -> Result<i64, StoreError> {
    let mut created_at = CreatedAtAllocator::reserve(connection, &[batch], store.now())?;
    let seqs = insert(store, connection, &[batch], &mut created_at)?;
    seqs.first().copied().ok_or_else(|| StoreError::corrupt("no row of a batch just inserted"))
}

fn start_generation(
    connection: &mut Connection,
    id: &WithdrawalId,
    generation: u32,
    (batch_seq, counted_at): (i64, i64),
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- start_generation
         update withdrawals as w
         set generation = x.generation, batch_seq = x.batch_seq, cancelled_at = null,
             list_state = 'OPEN', counted_at = x.counted_at
         from {x} where w.withdrawal_id = x.withdrawal_id",
    )
    .rows(
        Rows::default()
            .bytes("withdrawal_id", [&id.as_bytes()[..]])
            .long("generation", [i64::from(generation)])
            .long("batch_seq", [batch_seq])
            .long("counted_at", [counted_at]),
    );
    connection.execute(&statement).map(drop)
}
