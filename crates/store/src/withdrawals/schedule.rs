use std::collections::HashMap;

use grid_batch_core::{AddOutcome, NewBatch, Timestamp};
use grid_batch_withdrawals::{Withdrawal, WithdrawalConflict, WithdrawalId};

use super::{
    batch_of,
    rows::{WITHDRAWAL_COLUMNS, WithdrawalRow},
};
use crate::{
    intake::{CreatedAtAllocator, insert},
    sql::{Connection, Rows, Statement, Store, StoreError, groups::LOCK_LIMIT},
};

const FIRST_GENERATION: u32 = 1;

/// A withdrawal and its first batch.
type Pair<'a> = (&'a Withdrawal, NewBatch);

/// Stores withdrawals with their first batches in one commit, except those whose id another
/// withdrawal has.
pub(crate) fn schedule(
    store: &Store,
    withdrawals: &[Withdrawal],
) -> Result<Vec<Result<AddOutcome, WithdrawalConflict>>, StoreError> {
    // Requests for the same id at different services lock different rows. The database refuses the
    // second insert, and its retry finds the first withdrawal: each time at least one more.
    let mut retries_left = withdrawals.len();
    loop {
        match try_schedule(store, withdrawals) {
            Err(error) if error.is_duplicate() && retries_left > 0 => retries_left -= 1,
            done => return done,
        }
    }
}

fn try_schedule(
    store: &Store,
    withdrawals: &[Withdrawal],
) -> Result<Vec<Result<AddOutcome, WithdrawalConflict>>, StoreError> {
    let pairs: Vec<Pair<'_>> = withdrawals
        .iter()
        .map(|withdrawal| (withdrawal, batch_of(withdrawal, FIRST_GENERATION)))
        .collect();
    let now = store.now();
    store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        let mut created_at = CreatedAtAllocator::reserve(connection, &batches(&pairs), now)?;
        let stored = find_withdrawals(connection, withdrawals)?;
        let (outcomes, new) = decide(&pairs, stored);
        let seqs = insert(connection, &batches(new.iter().copied()), &mut created_at)?;
        created_at.release_unused(connection)?;
        insert_withdrawals(connection, &new, &seqs, now)?;
        Ok(outcomes)
    })
}

fn find_withdrawals(
    connection: &mut Connection,
    withdrawals: &[Withdrawal],
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

fn insert_withdrawals(
    connection: &mut Connection,
    pairs: &[&Pair<'_>],
    batch_seqs: &[i64],
    now: Timestamp,
) -> Result<(), StoreError> {
    let new = || pairs.iter().map(|(withdrawal, _)| *withdrawal);
    let statement = Statement::new(
        connection.dialect(),
        "-- insert_withdrawals
         insert into withdrawals (withdrawal_id, service_id, kind, reward_id, pool,
             beneficiary, amount, batch_seq, created_at)
         select withdrawal_id, service_id, kind, reward_id, pool,
             beneficiary, amount, batch_seq, created_at
         from {x} order by withdrawal_id",
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
            .long("batch_seq", batch_seqs.iter().copied())
            .long("created_at", new().map(|_| now.as_micros())),
    );
    connection.execute(&statement).map(drop)
}

fn batches<'p>(pairs: impl IntoIterator<Item = &'p Pair<'p>>) -> Vec<&'p NewBatch> {
    pairs.into_iter().map(|(_, batch)| batch).collect()
}

/// Whether both are the same withdrawal. The gas admin of its pool may have changed meanwhile.
fn has_same_terms(stored: &Withdrawal, given: &Withdrawal) -> bool {
    let Withdrawal { id, service_id: _, kind, reward_id, pool, beneficiary, amount } = stored;
    (id, kind, reward_id, pool, beneficiary, amount)
        == (
            &given.id,
            &given.kind,
            &given.reward_id,
            &given.pool,
            &given.beneficiary,
            &given.amount,
        )
}

/// The outcome of each withdrawal, and the pairs to store.
fn decide<'p>(
    pairs: &'p [Pair<'p>],
    stored: Vec<Withdrawal>,
) -> (Vec<Result<AddOutcome, WithdrawalConflict>>, Vec<&'p Pair<'p>>) {
    let mut known: HashMap<WithdrawalId, Withdrawal> =
        stored.into_iter().map(|withdrawal| (withdrawal.id, withdrawal)).collect();
    let mut new = Vec::new();
    let outcomes = pairs
        .iter()
        .map(|pair| match known.get(&pair.0.id) {
            None => {
                known.insert(pair.0.id, pair.0.clone());
                new.push(pair);
                Ok(AddOutcome::Stored)
            }
            Some(stored) if has_same_terms(stored, pair.0) => Ok(AddOutcome::AlreadyStored),
            Some(stored) => Err(WithdrawalConflict { stored: Box::new(stored.clone()) }),
        })
        .collect();
    (outcomes, new)
}
