use std::slice;

use grid_batch_core::{
    Change, ChangeOutcome, Decision, Event, NewBatch, ServiceId, StoredBatch, Timestamp,
};
use grid_batch_withdrawals::{MoveStep, Withdrawal};

use super::{
    batch_of,
    movable::{GasAdminOfPool, Movable, examine},
    unsettled::pools_of,
};
use crate::{
    batch::{
        AttemptLog, end_waiting, fill_beside_parked, lock_lanes_of, lock_services, record_locked,
    },
    intake::{CreatedAtAllocator, insert},
    sql::{Connection, Rows, Statement, Store, StoreError, groups::LOCK_LIMIT},
};

impl Store {
    /// Which of a gas admin's open withdrawals [`move_withdrawals`](Self::move_withdrawals) would move
    /// in the same step.
    pub fn withdrawals_to_move(
        &self,
        from: &ServiceId,
        gas_admin_of: &GasAdminOfPool<'_>,
        after: Option<Timestamp>,
        count: usize,
    ) -> Result<MoveStep, StoreError> {
        let examined = self
            .pools
            .read()?
            .snapshot(|connection| examine(connection, from, gas_admin_of, after, count))?;
        Ok(examined.into_step(count))
    }

    /// Moves open withdrawals of a gas admin for which nothing was signed to the present gas admins of
    /// their pools: to the end of their queues, in the same order, each with a new generation.
    ///
    /// One step examines at most `count` open withdrawals, in one commit. **Nothing proves here that no
    /// transaction was sent that is not stored**: the caller must have settled the nonces of the account.
    pub fn move_withdrawals(
        &self,
        from: &ServiceId,
        gas_admin_of: &GasAdminOfPool<'_>,
        after: Option<Timestamp>,
        count: usize,
    ) -> Result<MoveStep, StoreError> {
        let now = self.now();
        self.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
            let targets = find_targets(connection, from, gas_admin_of)?;
            // All at once, because intake locks services in the order of their ids.
            lock_services(connection, targets.iter().chain([from]))?;
            lock_lanes_of(connection, from)?;
            let locked = |pool: &str| gas_admin_of(pool).filter(|to| targets.contains(to));
            let examined = examine(connection, from, &locked, after, count)?;
            move_all(self, connection, &examined.movable, now)?;
            Ok(examined.into_step(count))
        })
    }
}

/// The present gas admins of the pools that a gas admin has withdrawals of.
fn find_targets(
    connection: &mut Connection,
    from: &ServiceId,
    gas_admin_of: &GasAdminOfPool<'_>,
) -> Result<Vec<ServiceId>, StoreError> {
    let pools = pools_of(connection, from)?;
    Ok(pools.iter().filter_map(|pool| gas_admin_of(pool)).collect())
}

/// Adds batches at the new gas admins, and then ends those at the former one: the end of a batch that
/// its withdrawal still has would be a failure of the withdrawal. The last ends first: as long as the first
/// of them is open, the others wait behind it.
fn move_all(
    store: &Store,
    connection: &mut Connection,
    movable: &[Movable],
    now: Timestamp,
) -> Result<(), StoreError> {
    if movable.is_empty() {
        return Ok(());
    }
    let batches: Vec<NewBatch> = movable.iter().map(Movable::next_batch).collect();
    let batches: Vec<&NewBatch> = batches.iter().collect();
    let mut created_at = CreatedAtAllocator::reserve(connection, &batches, now)?;
    let batch_seqs = insert(store, connection, &batches, &mut created_at)?;
    write_moved(connection, movable, batch_seqs)?;
    fill_beside_parked(connection, movable.iter().map(|movable| &movable.to), now)?;
    for movable in movable.iter().rev() {
        end_batch(store, connection, movable, now)?;
    }
    detach_nonces(connection, movable)
}

impl Movable {
    fn next_batch(&self) -> NewBatch {
        let moved = Withdrawal { service_id: self.to.clone(), ..self.withdrawal.clone() };
        batch_of(&moved, self.generation + 1)
    }
}

fn end_batch(
    store: &Store,
    connection: &mut Connection,
    movable: &Movable,
    now: Timestamp,
) -> Result<(), StoreError> {
    let StoredBatch { service_id, batch_id, progress, .. } = &movable.batch;
    let event = Event::Decided { attempt: progress.attempts, decision: Decision::Invalid };
    let error = format!("moved to the gas admin {}, before anything was signed", movable.to);
    let change = Change { error: Some(error), ..Change::new(service_id.clone(), *batch_id, event) };
    let outcome = if movable.waits_behind_another {
        Some(end_waiting(connection, &store.scheduler, movable.batch_seq, &change, now)?)
    } else {
        let change = slice::from_ref(&change);
        record_locked(connection, &store.scheduler, change, AttemptLog::default(), now)?.pop()
    };
    match outcome {
        Some(ChangeOutcome::Applied { .. }) => Ok(()),
        other => Err(StoreError::corrupt(format!("batch {batch_id:.12} does not end: {other:?}"))),
    }
}

fn write_moved(
    connection: &mut Connection,
    movable: &[Movable],
    batch_seqs: Vec<i64>,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- move_withdrawals
         update withdrawals as w
         set service_id = x.service_id, generation = x.generation, batch_seq = x.batch_seq
         from {x} where w.seq = x.withdrawal_seq",
    )
    .rows(
        Rows::default()
            .long("withdrawal_seq", movable.iter().map(|movable| movable.withdrawal_seq))
            .text("service_id", movable.iter().map(|movable| movable.to.as_str()))
            .long("generation", movable.iter().map(|movable| i64::from(movable.generation) + 1))
            .long("batch_seq", batch_seqs),
    );
    connection.execute(&statement).map(drop)
}

/// Nonces of the former gas admin that did not pay are no nonces of the withdrawals any more: the next
/// nonce belongs to another account and may be lower.
fn detach_nonces(connection: &mut Connection, movable: &[Movable]) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- detach_nonces
         update account_nonces as n set withdrawal_seq = null, generation = null
         from {x} where n.withdrawal_seq = x.withdrawal_seq",
    )
    .rows(
        Rows::default()
            .long("withdrawal_seq", movable.iter().map(|movable| movable.withdrawal_seq)),
    );
    connection.execute(&statement).map(drop)
}
