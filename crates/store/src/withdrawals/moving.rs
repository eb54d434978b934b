//! Open withdrawals of a gas admin whose pools have another gas admin now: lists them, finds those that can be moved,
//! and moves them.

use std::{
    collections::{HashMap, HashSet},
    slice,
};

use diesel::{
    alias,
    dsl::{count_star, exists, min, not},
    prelude::*,
};
use grid_batch_core::batches::{
    BatchState, Change, ChangeOutcome, Decision, Event, NewBatch, Progress, StoredBatch,
    TraceContext,
};
use grid_batch_core::operators::{ActionEffect, OperatorRequest, OperatorTarget, OperatorVerb};
use grid_batch_core::{ItemId, ServiceId, Timestamp};
use grid_batch_withdrawals::{
    Call, MoveObstacle, MoveStep, OpenWithdrawal, OpenWithdrawals, Withdrawal,
};

use super::{
    batch_of, find_traces,
    list::{WithdrawalRecord, withdrawals_with_batch},
    nonces::pools_of,
    pool_lanes::fill_beside_parked,
    schema::{account_nonces, withdrawals},
    target_of,
};
use crate::{
    action_log::{Logged, logged},
    batch::{AttemptLog, REFUSED, end_waiting, lock_lanes_of, lock_services, record_locked},
    intake::{CreatedAtAllocator, insert},
    sql::{
        Connection, Rows, Store, StoreError,
        groups::LOCK_LIMIT,
        rows::{limit, service_id},
        schema::{batches, database_state, lanes, waiting_holds},
    },
};

alias!(lanes as heads: Heads, lanes as older_heads: OlderHeads);

impl Store {
    /// How many open withdrawals each pool has at each gas admin. The cost grows with their number.
    pub fn open_withdrawals(&self) -> Result<Vec<OpenWithdrawals>, StoreError> {
        let not_before_head = batches::service_id
            .eq(heads.field(lanes::service_id))
            .and(batches::created_at.nullable().ge(heads.field(lanes::created_at)));
        let older_head = older_heads
            .filter(older_heads.field(lanes::busy))
            .filter(older_heads.field(lanes::service_id).eq(heads.field(lanes::service_id)))
            .filter(older_heads.field(lanes::created_at).lt(heads.field(lanes::created_at)));
        let query = heads
            .inner_join(batches::table.on(not_before_head))
            .inner_join(withdrawals::table.on(withdrawals::batch_seq.eq(batches::seq)))
            .filter(heads.field(lanes::busy))
            .filter(not(exists(older_head)))
            .filter(batches::ended_at.is_null())
            .group_by((withdrawals::service_id, withdrawals::pool))
            .order_by((withdrawals::service_id, withdrawals::pool))
            .select((withdrawals::service_id, withdrawals::pool, count_star()));
        let rows: Vec<(String, String, i64)> =
            self.pools.read()?.load_query("open_withdrawals", query)?;
        // Calls stay with their account.
        let of_pools = rows.into_iter().filter(|(_, pool, _)| !Call::is_gate(pool));
        of_pools
            .map(|(service, pool, open)| {
                let open = u64::try_from(open).map_err(StoreError::corrupt)?;
                Ok(OpenWithdrawals { service_id: service_id(&service)?, pool, open })
            })
            .collect()
    }
}

/// The open withdrawals of a service after `after`, in the order of its queue.
fn open_withdrawals_of(
    connection: &mut Connection,
    service_id: &ServiceId,
    after: Option<Timestamp>,
    count: usize,
) -> Result<Vec<WithdrawalRecord>, StoreError> {
    let oldest_head = heads
        .filter(heads.field(lanes::service_id).eq(service_id.as_str()))
        .select(min(heads.field(lanes::created_at)));
    let query = withdrawals_with_batch()
        .filter(batches::service_id.eq(service_id.as_str()))
        .filter(batches::ended_at.is_null())
        .filter(batches::created_at.nullable().ge(oldest_head.single_value()))
        .filter(batches::created_at.gt(after.map_or(i64::MIN, Timestamp::as_micros)))
        .order_by((batches::service_id, batches::created_at))
        .limit(limit(count))
        .select(WithdrawalRecord::as_select());
    connection.load_query("open_withdrawals_of", query)
}

/// Returns the present gas admin of a pool.
pub type GasAdminOfPool<'a> = dyn Fn(&str) -> Option<ServiceId> + 'a;

impl Store {
    /// The open withdrawals of a gas admin that [`move_withdrawals`](Self::move_withdrawals) would move in the same
    /// step.
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

    /// Moves open withdrawals of a gas admin, if nothing was signed for them, to the end of the queues of the present
    /// gas admins of their pools, in the same order, each with a new generation.
    ///
    /// One step examines at most `count` open withdrawals, in one commit. **This does not prove that all sent
    /// transactions are stored**: the caller must have settled the nonces of the account.
    pub fn move_withdrawals(
        &self,
        from: &ServiceId,
        gas_admin_of: &GasAdminOfPool<'_>,
        after: Option<Timestamp>,
        count: usize,
        request: &OperatorRequest,
    ) -> Result<MoveStep, StoreError> {
        let now = self.now();
        logged(self, request, OperatorVerb::MoveWithdrawal, Some(LOCK_LIMIT), |connection| {
            let targets = find_targets(connection, from, gas_admin_of)?;
            // All are locked at once, because intake locks services in the order of their ids.
            lock_services(connection, targets.iter().chain([from]))?;
            lock_lanes_of(connection, from)?;
            let locked = |pool: &str| gas_admin_of(pool).filter(|to| targets.contains(to));
            let examined = examine(connection, from, &locked, after, count)?;
            move_all(self, connection, &examined.movable, now)?;
            let changes = examined.movable.iter().map(Movable::change).collect();
            Ok(Logged { answer: examined.into_step(count), changes })
        })
    }
}

/// The present gas admins of the pools of which a gas admin has withdrawals.
fn find_targets(
    connection: &mut Connection,
    from: &ServiceId,
    gas_admin_of: &GasAdminOfPool<'_>,
) -> Result<Vec<ServiceId>, StoreError> {
    let pools = pools_of(connection, from)?;
    Ok(pools.iter().filter_map(|pool| gas_admin_of(pool)).collect())
}

/// Adds batches at the new gas admins, and then ends those at the former one, because ending a withdrawal's current
/// batch would count as a failure of the withdrawal. The last batch ends first, because the others wait behind the
/// first one as long as that is open.
fn move_all(
    store: &Store,
    connection: &mut Connection,
    movable: &[Movable],
    now: Timestamp,
) -> Result<(), StoreError> {
    if movable.is_empty() {
        return Ok(());
    }
    let former = movable.iter().map(|movable| (&movable.batch.service_id, &movable.batch.batch_id));
    let traces = find_traces(connection, former)?;
    let batches: Vec<NewBatch> =
        movable.iter().map(|movable| movable.next_batch(&traces)).collect();
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
    connection.execute_rows(
        "-- move_withdrawals
         update withdrawals as w
         set service_id = x.service_id, generation = x.generation, batch_seq = x.batch_seq
         from {x} where w.seq = x.withdrawal_seq",
        Rows::default()
            .long("withdrawal_seq", movable.iter().map(|movable| movable.withdrawal_seq))
            .text("service_id", movable.iter().map(|movable| movable.to.as_str()))
            .long("generation", movable.iter().map(|movable| i64::from(movable.generation) + 1))
            .long("batch_seq", batch_seqs),
    )
}

/// Detaches nonces of the former gas admin that did not pay from the withdrawals, because the next nonce belongs to
/// another account and may be lower.
fn detach_nonces(connection: &mut Connection, movable: &[Movable]) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- detach_nonces
         update account_nonces as n set withdrawal_seq = null, generation = null
         from {x} where n.withdrawal_seq = x.withdrawal_seq",
        Rows::default()
            .long("withdrawal_seq", movable.iter().map(|movable| movable.withdrawal_seq)),
    )
}

/// Open withdrawals of one gas admin, in order.
struct ExaminedStep {
    pub(super) movable: Vec<Movable>,
    kept: Vec<(OpenWithdrawal, MoveObstacle)>,
    count: usize,
    last: Option<Timestamp>,
}

/// A withdrawal that can be moved.
struct Movable {
    pub(super) withdrawal_seq: i64,
    /// The withdrawal as it is now, at its former gas admin.
    pub(super) withdrawal: Withdrawal,
    pub(super) generation: u32,
    pub(super) batch_seq: i64,
    pub(super) batch: StoredBatch,
    pub(super) waits_behind_another: bool,
    pub(super) to: ServiceId,
}

impl ExaminedStep {
    /// The result of the step that moved them or would move them.
    pub(super) fn into_step(self, count: usize) -> MoveStep {
        MoveStep {
            moved: self.movable.iter().map(Movable::open_withdrawal).collect(),
            kept: self.kept,
            next: self.last.filter(|_| self.count == count),
        }
    }
}

impl Movable {
    fn open_withdrawal(&self) -> OpenWithdrawal {
        OpenWithdrawal { id: self.withdrawal.id, batch_id: self.batch.batch_id }
    }

    /// The entry of its move in the log.
    fn change(&self) -> (OperatorTarget, ActionEffect) {
        let StoredBatch { service_id, batch_id, .. } = &self.batch;
        let before = format!("at the gas admin {service_id}");
        let effect = ActionEffect::in_words(before, format!("at the gas admin {}", self.to));
        (target_of(service_id, *batch_id), effect)
    }

    fn next_batch(&self, traces: &HashMap<ItemId, TraceContext>) -> NewBatch {
        let (service_id, trace) = (self.to.clone(), traces.get(&self.batch.batch_id).cloned());
        let moved = Withdrawal { service_id, trace, ..self.withdrawal.clone() };
        batch_of(&moved, self.generation + 1)
    }
}

/// Reads open withdrawals and finds out which can be moved. To move them, the service must be locked.
fn examine(
    connection: &mut Connection,
    from: &ServiceId,
    gas_admin_of: &GasAdminOfPool<'_>,
    after: Option<Timestamp>,
    count: usize,
) -> Result<ExaminedStep, StoreError> {
    let records = open_withdrawals_of(connection, from, after, count)?;
    let batch_seqs: Vec<i64> = records.iter().map(|(_, batch)| batch.seq()).collect();
    let signed = find_signed(connection, &records)?;
    let held = find_waiting_holds(connection, batch_seqs)?;
    let restored_seq = restored_seq(connection)?;
    let (mut movable, mut kept) = (Vec::new(), Vec::new());
    let (count, mut last) = (records.len(), None);
    for (withdrawal, batch) in records {
        let (batch_seq, waits_behind_another) = (batch.seq(), batch.waits_behind_another());
        let batch = batch.into_batch()?;
        last = Some(batch.created_at);
        let (withdrawal_seq, generation) = (withdrawal.withdrawal_seq, withdrawal.generation()?);
        let withdrawal = withdrawal.into_withdrawal()?;
        let Some(to) = gas_admin_of(&withdrawal.pool).filter(|to| to != from) else { continue };
        let obstacle = if signed.contains(&withdrawal_seq) {
            Some(MoveObstacle::Signed)
        } else if waits_behind_another && batch_seq <= restored_seq {
            Some(MoveObstacle::InDoubt)
        } else if held.contains(&batch_seq) {
            Some(MoveObstacle::Held)
        } else {
            obstacle(&batch)
        };
        match obstacle {
            Some(obstacle) => {
                let kept_withdrawal =
                    OpenWithdrawal { id: withdrawal.id, batch_id: batch.batch_id };
                kept.push((kept_withdrawal, obstacle));
                // Later withdrawals must not overtake it.
                if obstacle == MoveObstacle::Submitting {
                    return Ok(ExaminedStep { movable, kept, count, last: None });
                }
            }
            None => movable.push(Movable {
                withdrawal_seq,
                withdrawal,
                generation,
                batch_seq,
                batch,
                waits_behind_another,
                to,
            }),
        }
    }
    Ok(ExaminedStep { movable, kept, count, last })
}

/// Why the batch of a withdrawal for which nothing was signed cannot end without an attempt.
fn obstacle(batch: &StoredBatch) -> Option<MoveObstacle> {
    let Progress { state, earlier_may_arrive, .. } = batch.progress;
    // A hold that began because there is no key, or because a node refuses the payment, is not an operator's decision.
    let is_held = batch.held.as_ref().is_some_and(|hold| !hold.reason.starts_with(REFUSED));
    match state {
        BatchState::Submitting => Some(MoveObstacle::Submitting),
        _ if state.awaits_poller() || earlier_may_arrive => Some(MoveObstacle::InDoubt),
        _ if is_held => Some(MoveObstacle::Held),
        _ => None,
    }
}

/// Those of these withdrawals that were or may be paid with a nonce, or whose present generation has ended with a nonce
/// that was closed before the batch.
fn find_signed(
    connection: &mut Connection,
    records: &[WithdrawalRecord],
) -> Result<HashSet<i64>, StoreError> {
    let mut generations = HashMap::new();
    for (withdrawal, _) in records {
        generations.insert(withdrawal.withdrawal_seq, i64::from(withdrawal.generation()?));
    }
    let query = account_nonces::table
        .filter(account_nonces::withdrawal_seq.eq_any(generations.keys().copied()))
        .filter(account_nonces::outcome.is_null().or(account_nonces::outcome.ne("USED_ELSEWHERE")))
        .select((
            account_nonces::withdrawal_seq.assume_not_null(),
            account_nonces::generation,
            account_nonces::outcome,
        ));
    let nonces: Vec<(i64, Option<i32>, Option<String>)> =
        connection.load_query("nonces_of_withdrawals", query)?;
    let is_signed = |(seq, generation, outcome): &(i64, Option<i32>, Option<String>)| {
        let is_payable = outcome.as_deref().is_none_or(|outcome| outcome == "WITHDRAWN");
        is_payable || generations.get(seq).copied() == generation.map(i64::from)
    };
    Ok(nonces.iter().filter(|nonce| is_signed(nonce)).map(|(seq, _, _)| *seq).collect())
}

/// Those of these batches that an operator holds and that wait behind another one.
fn find_waiting_holds(
    connection: &mut Connection,
    batch_seqs: Vec<i64>,
) -> Result<HashSet<i64>, StoreError> {
    let query = waiting_holds::table
        .filter(waiting_holds::batch_seq.eq_any(batch_seqs))
        .select(waiting_holds::batch_seq);
    Ok(connection.load_query("waiting_holds_of", query)?.into_iter().collect())
}

/// The last batch that was stored when the database was restored; 0 if it never was.
fn restored_seq(connection: &mut Connection) -> Result<i64, StoreError> {
    let query = database_state::table.find(1).select(database_state::restored_seq);
    let rows: Vec<Option<i64>> = connection.load_query("restored_seq", query)?;
    Ok(rows.into_iter().next().flatten().unwrap_or_default())
}
