use std::collections::BTreeSet;

use grid_batch_core::{NewBatch, ServiceId, Timestamp};
use grid_batch_withdrawals::{ScheduleOutcome, Withdrawal, WithdrawalConflict};

use super::{
    batch_of,
    new_withdrawals::{Decision, IntakeLimits, Pair, decide},
    rows::{WITHDRAWAL_COLUMNS, WithdrawalRow},
};
use crate::{
    batch::{PaymentSums, fill_beside_parked},
    intake::{Capacity, CreatedAtAllocator, insert_dated},
    sql::{
        Connection, Rows, Statement, Store, StoreError,
        groups::{GroupItem, GroupResult, commit_group},
    },
};

const FIRST_GENERATION: u32 = 1;

/// The result of scheduling one withdrawal.
type Scheduled = Result<ScheduleOutcome, WithdrawalConflict>;

/// A batch that was just inserted: its `seq` and its `created_at`.
type Inserted = (i64, Timestamp);

/// Stores withdrawals with their first batches, except those whose id another withdrawal has: in one
/// commit unless rows of their services are locked.
pub(crate) fn schedule(
    store: &Store,
    withdrawals: &[Withdrawal],
) -> Result<Vec<Scheduled>, StoreError> {
    let mut outcomes: Vec<Option<Scheduled>> = withdrawals.iter().map(|_| None).collect();
    // Requests for the same id at different services lock different rows. The database refuses the
    // second insert, and its retry finds the first withdrawal: each time at least one more.
    let mut retries_left = withdrawals.len();
    loop {
        match schedule_rest(store, withdrawals, &mut outcomes) {
            Some(error) if error.is_duplicate() && retries_left > 0 => retries_left -= 1,
            Some(error) if !matches!(error, StoreError::ServicesLocked { .. }) => {
                return Err(error);
            }
            _ => break,
        }
    }
    let locked = |withdrawal: &Withdrawal| WithdrawalConflict::ServiceLocked {
        service_id: withdrawal.service_id.clone(),
    };
    let outcome = |(outcome, withdrawal): (Option<Scheduled>, &Withdrawal)| {
        outcome.unwrap_or_else(|| Err(locked(withdrawal)))
    };
    Ok(outcomes.into_iter().zip(withdrawals).map(outcome).collect())
}

/// Schedules the withdrawals that have no outcome yet.
fn schedule_rest(
    store: &Store,
    withdrawals: &[Withdrawal],
    outcomes: &mut [Option<Scheduled>],
) -> Option<StoreError> {
    let (mut places, rest): (Vec<_>, Vec<&Withdrawal>) =
        outcomes.iter_mut().zip(withdrawals).filter(|(outcome, _)| outcome.is_none()).unzip();
    let GroupResult { outcomes, error } =
        commit_group(store, &rest, |connection, group| schedule_group(store, connection, group));
    for (place, outcome) in places.iter_mut().zip(outcomes) {
        **place = outcome;
    }
    error
}

impl GroupItem for &Withdrawal {
    fn services(&self) -> impl Iterator<Item = &ServiceId> {
        [&self.service_id].into_iter()
    }
}

/// Schedules withdrawals. Part of a transaction.
fn schedule_group(
    store: &Store,
    connection: &mut Connection,
    group: &[&Withdrawal],
) -> Result<Vec<Scheduled>, StoreError> {
    let pairs: Vec<Pair<'_>> = group
        .iter()
        .map(|withdrawal| (*withdrawal, batch_of(withdrawal, FIRST_GENERATION)))
        .collect();
    let now = store.now();
    let mut created_at = CreatedAtAllocator::reserve(connection, &batches(&pairs), now)?;
    let stored = find_withdrawals(connection, group)?;
    let pools: BTreeSet<&str> = group.iter().map(|withdrawal| withdrawal.pool.as_str()).collect();
    let mut limits = IntakeLimits {
        capacity: Capacity::read_open(connection, &created_at, store.intake_limits)?,
        sums: PaymentSums::lock(connection, &store.payment_limits, pools, now)?,
        payments: &store.payment_limits,
    };
    let (decisions, new) = decide(&pairs, stored, &mut limits)?;
    let sums = limits.sums;
    let inserted = insert_dated(store, connection, &batches(new.iter().copied()), &mut created_at)?;
    created_at.release_unused(connection)?;
    insert_withdrawals(connection, &new, &inserted, sums.step())?;
    fill_beside_parked(connection, new.iter().map(|(_, batch)| &batch.service_id), now)?;
    sums.write(connection)?;
    outcomes(decisions, &inserted)
}

/// The outcome of each decision. The batches are those of the withdrawals that were stored, in order.
fn outcomes(decisions: Vec<Decision>, inserted: &[Inserted]) -> Result<Vec<Scheduled>, StoreError> {
    let mut inserted = inserted.iter();
    let outcome = |decision| match decision {
        Decision::Store { ahead } => {
            let (_, created_at) = *inserted
                .next()
                .ok_or_else(|| StoreError::corrupt("no row of a batch just inserted"))?;
            Ok(Ok(ScheduleOutcome::Stored { created_at, ahead }))
        }
        Decision::Keep => Ok(Ok(ScheduleOutcome::AlreadyStored)),
        Decision::Refuse(conflict) => Ok(Err(conflict)),
    };
    decisions.into_iter().map(outcome).collect()
}

fn find_withdrawals(
    connection: &mut Connection,
    withdrawals: &[&Withdrawal],
) -> Result<Vec<Withdrawal>, StoreError> {
    let ids = withdrawals.iter().map(|withdrawal| &withdrawal.id.as_bytes()[..]);
    let statement = Statement::new(
        connection.dialect(),
        format!(
            "-- find_withdrawals
             select {WITHDRAWAL_COLUMNS}
             from {{x}} join withdrawals w on w.withdrawal_id = x.withdrawal_id"
        ),
    )
    .rows(Rows::default().bytes("withdrawal_id", ids));
    let rows: Vec<WithdrawalRow> = connection.load(&statement)?;
    rows.into_iter().map(WithdrawalRow::into_withdrawal).collect()
}

/// Inserts withdrawals in the order of their queues.
fn insert_withdrawals(
    connection: &mut Connection,
    pairs: &[&Pair<'_>],
    inserted: &[Inserted],
    counted_at: i64,
) -> Result<(), StoreError> {
    let new = || pairs.iter().map(|(withdrawal, _)| *withdrawal);
    let statement = Statement::new(
        connection.dialect(),
        "-- insert_withdrawals
         insert into withdrawals (withdrawal_id, service_id, kind, reward_id, pool,
             beneficiary, amount, batch_seq, created_at, counted_at, idempotency_key)
         select withdrawal_id, service_id, kind, reward_id, pool,
             beneficiary, amount, batch_seq, created_at, counted_at, idempotency_key
         from {x} order by created_at, service_id",
    )
    .rows(
        Rows::default()
            .bytes("withdrawal_id", new().map(|w| &w.id.as_bytes()[..]))
            .text("service_id", new().map(|w| w.service_id.as_str()))
            .text("kind", new().map(|w| w.kind.as_str()))
            .optional_bytes(
                "reward_id",
                new().map(|w| w.reward_id.as_ref().map(|id| &id.as_bytes()[..])),
            )
            .text("pool", new().map(|w| w.pool.as_str()))
            .text("beneficiary", new().map(|w| w.beneficiary.as_str()))
            .text("amount", new().map(|w| w.amount.as_str()))
            .long("batch_seq", inserted.iter().map(|(seq, _)| *seq))
            .long("created_at", inserted.iter().map(|(_, created_at)| created_at.as_micros()))
            .long("counted_at", new().map(|_| counted_at))
            .optional_text("idempotency_key", new().map(|w| w.idempotency_key.as_deref())),
    );
    connection.execute(&statement).map(drop)
}

fn batches<'p>(pairs: impl IntoIterator<Item = &'p Pair<'p>>) -> Vec<&'p NewBatch> {
    pairs.into_iter().map(|(_, batch)| batch).collect()
}
