//! Stores withdrawals with their first batches, as far as the limits allow.

use std::collections::HashMap;

use grid_batch_core::batches::{BatchConflict, NewBatch};
use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_withdrawals::{
    Amount, LimitedSum, PaymentLimitError, PaymentLimits, ScheduleOutcome, Withdrawal,
    WithdrawalConflict, WithdrawalId,
};

use super::{
    batch_of,
    payment_sums::PaymentSums,
    pool_lanes::fill_beside_parked,
    rows::{WITHDRAWAL_COLUMNS, WithdrawalRow, to_json},
};
use crate::{
    intake::{Capacity, CreatedAtAllocator, insert_dated},
    sql::{
        Connection, Rows, Store, StoreError,
        groups::{GroupItem, GroupResult, commit_group},
    },
};

const FIRST_GENERATION: u32 = 1;

/// The result of scheduling one withdrawal.
type Scheduled = Result<ScheduleOutcome, WithdrawalConflict>;

/// A batch that was just inserted: its `seq` and its `created_at`.
type Inserted = (i64, Timestamp);

/// Schedules the withdrawals that have no outcome yet.
pub(super) fn schedule_rest(
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

/// Schedules withdrawals. Must be called in a transaction.
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
    let limited = group.iter().map(|withdrawal| limited_sums(store, withdrawal));
    let limited = limited.collect::<Result<Vec<_>, _>>()?;
    let mut limits = ScheduleLimits {
        capacity: Capacity::read_open(connection, &created_at, store.intake_limits)?,
        sums: PaymentSums::lock(connection, limited.iter().flatten(), now)?,
        payments: &store.payment_limits,
    };
    let (decisions, new) = decide(&pairs, &limited, stored, &mut limits)?;
    let sums = limits.sums;
    let inserted = insert_dated(store, connection, &batches(new.iter().copied()), &mut created_at)?;
    created_at.release_unused(connection)?;
    insert_withdrawals(connection, &new, &inserted, sums.step())?;
    fill_beside_parked(connection, new.iter().map(|(_, batch)| &batch.service_id), now)?;
    sums.write(connection)?;
    outcomes(decisions, &inserted)
}

/// The outcome of each decision. `batches` are those of the stored withdrawals, in order.
fn outcomes(
    decisions: Vec<ScheduleDecision>,
    inserted: &[Inserted],
) -> Result<Vec<Scheduled>, StoreError> {
    let mut inserted = inserted.iter();
    let outcome = |decision| match decision {
        ScheduleDecision::Store { ahead } => {
            let (_, created_at) = *inserted
                .next()
                .ok_or_else(|| StoreError::corrupt("no row of a batch just inserted"))?;
            Ok(Ok(ScheduleOutcome::Stored { created_at, ahead }))
        }
        ScheduleDecision::Keep => Ok(Ok(ScheduleOutcome::AlreadyStored)),
        ScheduleDecision::Refuse(conflict) => Ok(Err(conflict)),
    };
    decisions.into_iter().map(outcome).collect()
}

fn find_withdrawals(
    connection: &mut Connection,
    withdrawals: &[&Withdrawal],
) -> Result<Vec<Withdrawal>, StoreError> {
    let ids = withdrawals.iter().map(|withdrawal| &withdrawal.id.as_bytes()[..]);
    let rows: Vec<WithdrawalRow> = connection.load_rows(
        format!(
            "-- find_withdrawals
             select {WITHDRAWAL_COLUMNS}
             from {{x}} join withdrawals w on w.withdrawal_id = x.withdrawal_id"
        ),
        Rows::default().bytes("withdrawal_id", ids),
    )?;
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
    let calls: Vec<Option<String>> =
        new().map(|w| w.call.as_ref().map(to_json).transpose()).collect::<Result<_, _>>()?;
    connection.execute_rows(
        "-- insert_withdrawals
         insert into withdrawals (withdrawal_id, service_id, kind, reward_id, pool,
             beneficiary, amount, batch_seq, created_at, counted_at, idempotency_key, call)
         select withdrawal_id, service_id, kind, reward_id, pool,
             beneficiary, amount, batch_seq, created_at, counted_at, idempotency_key, call
         from {x} order by created_at, service_id",
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
            .optional_long("counted_at", new().map(|w| is_counted(w).then_some(counted_at)))
            .optional_text("idempotency_key", new().map(|w| w.idempotency_key.as_deref()))
            .optional_text("call", calls.iter().map(Option::as_deref)),
    )
}

fn batches<'p>(pairs: impl IntoIterator<Item = &'p Pair<'p>>) -> Vec<&'p NewBatch> {
    pairs.into_iter().map(|(_, batch)| batch).collect()
}

/// A withdrawal and its first batch.
type Pair<'a> = (&'a Withdrawal, NewBatch);

/// What to do with a withdrawal that is to be scheduled.
enum ScheduleDecision {
    /// Store it after this many open batches.
    Store {
        ahead: u64,
    },
    /// Nothing, because it is stored already.
    Keep,
    Refuse(WithdrawalConflict),
}

/// What to do with each withdrawal, and the pairs to store.
fn decide<'p>(
    pairs: &'p [Pair<'p>],
    limited: &[Vec<LimitedSum>],
    stored: Vec<Withdrawal>,
    limits: &mut ScheduleLimits<'_>,
) -> Result<(Vec<ScheduleDecision>, Vec<&'p Pair<'p>>), StoreError> {
    let mut known: HashMap<WithdrawalId, Withdrawal> =
        stored.into_iter().map(|withdrawal| (withdrawal.id, withdrawal)).collect();
    let (mut decisions, mut new) = (Vec::new(), Vec::new());
    for (pair, sums) in pairs.iter().zip(limited) {
        let decision = decide_one(pair, sums, &known, limits)?;
        if let ScheduleDecision::Store { .. } = decision {
            known.insert(pair.0.id, pair.0.clone());
            new.push(pair);
        }
        decisions.push(decision);
    }
    Ok((decisions, new))
}

fn decide_one(
    pair: &Pair<'_>,
    sums: &[LimitedSum],
    known: &HashMap<WithdrawalId, Withdrawal>,
    limits: &mut ScheduleLimits<'_>,
) -> Result<ScheduleDecision, StoreError> {
    let (withdrawal, batch) = pair;
    match known.get(&withdrawal.id) {
        Some(stored) if has_same_terms(stored, withdrawal) => return Ok(ScheduleDecision::Keep),
        Some(stored) => {
            let stored = Box::new(stored.clone());
            return Ok(ScheduleDecision::Refuse(WithdrawalConflict::OtherTerms { stored }));
        }
        None => {}
    }
    let amount = amount_of(withdrawal)?;
    if let Err(error) = check_payment(limits.payments, &limits.sums, withdrawal, sums, &amount) {
        return Ok(ScheduleDecision::Refuse(error.into()));
    }
    let ahead = limits.capacity.open(batch.service_id.as_str());
    match limits.capacity.take(batch, false) {
        Ok(()) => {
            limits.sums.add(sums, &amount);
            Ok(ScheduleDecision::Store { ahead })
        }
        Err(BatchConflict::QueueFull { service_id, open, limit }) => {
            Ok(ScheduleDecision::Refuse(WithdrawalConflict::QueueFull { service_id, open, limit }))
        }
        Err(other) => Err(StoreError::corrupt(other)),
    }
}

/// The limits on the withdrawals that a group may store.
struct ScheduleLimits<'a> {
    pub(super) capacity: Capacity<'a>,
    pub(super) sums: PaymentSums,
    pub(super) payments: &'a PaymentLimits,
}

/// Refuses an amount that exceeds the limit of one withdrawal or of a day.
pub(super) fn check_payment(
    limits: &PaymentLimits,
    stored: &PaymentSums,
    withdrawal: &Withdrawal,
    sums: &[LimitedSum],
    amount: &Amount,
) -> Result<(), PaymentLimitError> {
    if withdrawal.call.is_none() {
        limits.check_payment(&withdrawal.pool, amount)?;
    }
    stored.check(sums, amount)
}

/// The sums that the amount of a withdrawal is added to.
pub(super) fn limited_sums(
    store: &Store,
    withdrawal: &Withdrawal,
) -> Result<Vec<LimitedSum>, StoreError> {
    withdrawal.limited_sums(&store.payment_limits).map_err(StoreError::corrupt)
}

/// Whether its amount is counted for something.
fn is_counted(withdrawal: &Withdrawal) -> bool {
    withdrawal.call.as_ref().is_none_or(|call| !call.day_limits.is_empty())
}

/// The amount of a withdrawal, which is stored as text.
pub(super) fn amount_of(withdrawal: &Withdrawal) -> Result<Amount, StoreError> {
    withdrawal.amount.parse().map_err(StoreError::corrupt)
}

/// Whether both are the same withdrawal. The gas admin and the idempotency key may differ, because a pool can get
/// another gas admin, and the only withdrawal of a member may have been requested with another key.
fn has_same_terms(stored: &Withdrawal, given: &Withdrawal) -> bool {
    let Withdrawal { id, kind, reward_id, pool, beneficiary, amount, .. } = stored;
    let is_same_call = match (&stored.call, &given.call) {
        (Some(stored), Some(given)) => stored.has_same_contents_as(given),
        (None, None) => true,
        _ => false,
    };
    is_same_call
        && (id, kind, reward_id, pool, beneficiary, amount)
            == (
                &given.id,
                &given.kind,
                &given.reward_id,
                &given.pool,
                &given.beneficiary,
                &given.amount,
            )
}
