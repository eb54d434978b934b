//! Transactions that waiting batches miss: which the ledger is asked about, and what follows.

use std::{collections::BTreeSet, iter, time::Duration};

use diesel::{QueryableByName, sql_types::Binary};
use grid_batch_core::{EndedDependents, HeaderId, ServiceId};

use crate::{
    batch::{evaluate_incomplete, give_positions_if_complete, hold_overdue, lock_services},
    scheduling::{
        IncompleteBatch, find_arrived, find_overdue, find_that_ask, find_that_miss, insert_changed,
        mark_found,
    },
    sql::{
        Connection, Rows, Store, StoreError,
        groups::{GroupItem, GroupResult, commit_group},
        rows::{batch_id, claimed_by, limit},
    },
};

/// The number of batches that are evaluated in one commit.
const STEP: usize = 256;

impl GroupItem for IncompleteBatch {
    fn services(&self) -> impl Iterator<Item = &ServiceId> {
        iter::once(&self.1)
    }
}

/// Up to `count` missing transactions of the services of an instance that the ledger was not asked about for
/// at least `pause`, the longest ago first. They count as asked about from now on.
pub(crate) fn missing_transactions(
    store: &Store,
    instance: &str,
    pause: Duration,
    count: usize,
) -> Result<Vec<HeaderId>, StoreError> {
    let now = store.now();
    let claimed = claimed_by("m");
    let statement = store
        .statement(format!(
            "-- find_missing_to_ask
             select m.transaction_id from missing_transactions m
             where m.found_at is null and m.asked_at <= ? and {claimed}
             order by m.asked_at limit ?"
        ))
        .long(now.minus(pause).as_micros())
        .text(/* claimant */ instance)
        .long(limit(count));
    let rows: Vec<MissingRow> = store.pools.read()?.load(&statement)?;
    let ids: BTreeSet<HeaderId> =
        rows.iter().map(|row| batch_id(&row.transaction_id)).collect::<Result<_, _>>()?;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let statement = store
        .statement(
            "-- mark_asked
             update missing_transactions set asked_at = x.asked_at
             from {x} where missing_transactions.transaction_id = x.transaction_id
                 and missing_transactions.found_at is null",
        )
        .rows(
            Rows::default()
                .bytes("transaction_id", ids.iter().map(|id| &id.as_bytes()[..]))
                .long("asked_at", ids.iter().map(|_| now.as_micros())),
        );
    store.pools.write()?.write_transaction(|connection| {
        connection.execute(&statement)?;
        // A batch that was stored in the same moment by another commit did not see those that miss it.
        let arrived = find_arrived(connection, &ids)?;
        insert_changed(connection, &store.scheduler, arrived, now)
    })?;
    Ok(ids.into_iter().collect())
}

/// The ledger has these transactions. Returns the services that got a next batch.
///
/// Batches of services that another transaction keeps locked are left for the next time.
pub(crate) fn found_at_ledger(
    store: &Store,
    transaction_ids: &[HeaderId],
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let mut ready = BTreeSet::new();
    for id in transaction_ids {
        loop {
            let batches = find_that_miss(&mut *store.pools.read()?, id, STEP)?;
            let GroupResult { outcomes, error } =
                commit_group(store, &batches, |connection, batches| {
                    found_by(store, connection, batches, id)
                });
            let done = outcomes.iter().flatten().count();
            ready.extend(outcomes.into_iter().flatten().flatten());
            match error {
                None | Some(StoreError::ServicesLocked { .. }) => {}
                Some(error) => return Err(error),
            }
            if batches.len() < STEP || done == 0 {
                break;
            }
        }
    }
    Ok(ready)
}

/// The ledger has a transaction that these batches miss. Returns for each the service, if that got a next
/// batch.
fn found_by(
    store: &Store,
    connection: &mut Connection,
    batches: &[IncompleteBatch],
    id: &HeaderId,
) -> Result<Vec<Option<ServiceId>>, StoreError> {
    let (now, locked) = (store.now(), lock(connection, batches)?);
    mark_found(connection, &batches.iter().map(|(seq, _)| (*seq, *id)).collect::<Vec<_>>(), now)?;
    let (ready, _) =
        give_positions_if_complete(connection, &store.scheduler, batches, &locked, now)?;
    let is_ready =
        |(_, service): &IncompleteBatch| ready.contains(service).then(|| service.clone());
    Ok(batches.iter().map(is_ready).collect())
}

/// The ledger does not have these transactions. Batches end that depend on one which only invalid batches
/// have. Returns how many, and the services that got a next batch.
///
/// Batches of services that another transaction keeps locked are left for the next answer.
pub(crate) fn absent_at_ledger(
    store: &Store,
    transaction_ids: &[HeaderId],
) -> Result<EndedDependents, StoreError> {
    let mut all = EndedDependents::default();
    for id in transaction_ids {
        let mut after = i64::MIN;
        loop {
            let batches = find_that_ask(&mut *store.pools.read()?, id, after, STEP)?;
            let GroupResult { outcomes, error } =
                commit_group(store, &batches, |connection, batches| {
                    absent_for(store, connection, batches, id)
                });
            for evaluated in outcomes.into_iter().flatten() {
                all.ended += evaluated.ended;
                all.ready.extend(evaluated.ready);
            }
            match error {
                None | Some(StoreError::ServicesLocked { .. }) => {}
                Some(error) => return Err(error),
            }
            match batches.last() {
                Some((last, _)) if batches.len() == STEP => after = *last,
                _ => break,
            }
        }
    }
    Ok(all)
}

/// The ledger does not have a transaction that these batches miss. Returns an outcome for each; the first one
/// has what became of all.
fn absent_for(
    store: &Store,
    connection: &mut Connection,
    batches: &[IncompleteBatch],
    id: &HeaderId,
) -> Result<Vec<EndedDependents>, StoreError> {
    let (now, locked) = (store.now(), lock(connection, batches)?);
    let evaluated =
        evaluate_incomplete(connection, &store.scheduler, batches, &[*id], &locked, now)?;
    let mut outcomes = vec![EndedDependents::default(); batches.len()];
    if let Some(first) = outcomes.first_mut() {
        first.ended = evaluated.ended;
        first.ready = evaluated.ready.into_iter().collect();
    }
    Ok(outcomes)
}

/// Holds batches that have missed a transaction for longer than `longest`, unless it has arrived. Returns how
/// many.
pub(crate) fn hold_missing(store: &Store, longest: Duration) -> Result<usize, StoreError> {
    let before = store.now().minus(longest);
    let limit = humantime(longest);
    let mut held = 0;
    loop {
        let batches = find_overdue(&mut *store.pools.read()?, before, STEP)?;
        let GroupResult { outcomes, error } =
            commit_group(store, &batches, |connection, batches| {
                let locked = lock(connection, batches)?;
                let (scheduler, now) = (&store.scheduler, store.now());
                let held = hold_overdue(connection, scheduler, batches, &locked, &limit, now)?;
                Ok((0..batches.len()).map(|number| number < held).collect())
            });
        let done = outcomes.iter().flatten().count();
        held += outcomes.into_iter().flatten().filter(|held| *held).count();
        match error {
            None | Some(StoreError::ServicesLocked { .. }) => {}
            Some(error) => return Err(error),
        }
        if batches.len() < STEP || done == 0 {
            return Ok(held);
        }
    }
}

fn lock(
    connection: &mut Connection,
    batches: &[IncompleteBatch],
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let services: BTreeSet<ServiceId> =
        batches.iter().map(|(_, service)| service.clone()).collect();
    lock_services(connection, &services)?;
    Ok(services)
}

/// A duration for an operator, such as `10m`.
fn humantime(duration: Duration) -> String {
    match (duration.as_secs(), duration.as_secs() % 60) {
        (0, _) => format!("{} ms", duration.as_millis()),
        (seconds, 0) => format!("{} min", seconds / 60),
        (seconds, _) => format!("{seconds} s"),
    }
}

#[derive(QueryableByName)]
struct MissingRow {
    #[diesel(sql_type = Binary)]
    transaction_id: Vec<u8>,
}
