//! Handles the ledger's answers about missing transactions, and transactions that have been missing for too long.

use std::{collections::BTreeSet, iter, time::Duration};

use grid_batch_core::evidence::{EndedDependents, LookupLag, MissingTransactionStore};
use grid_batch_core::{BatchResult, ItemId, ServiceId};

use super::{
    IncompleteBatch,
    evaluate::{evaluate_incomplete, give_positions_if_complete, hold_overdue},
    lookups::{look_up_again, lookup_lag, missing_transactions},
    table::{find_overdue, find_that_ask, find_that_miss, mark_found},
};
use crate::{
    batch::lock_services,
    scheduling::{DEPENDENTS_AT_ONCE, begin_turns, find_due_services},
    sql::{
        ClaimStore, Connection, Store, StoreError,
        groups::{GroupItem, commit_group},
    },
};

/// The number of batches that are evaluated in one commit.
const STEP: usize = DEPENDENTS_AT_ONCE;

impl MissingTransactionStore for ClaimStore {
    fn missing_transactions(&self, pause: Duration, limit: usize) -> BatchResult<Vec<ItemId>> {
        Ok(missing_transactions(&self.store, self.instance().as_str(), pause, limit)?)
    }

    fn look_up_again(&self, transaction_ids: &[ItemId], pause: Duration) -> BatchResult<()> {
        Ok(look_up_again(&self.store, transaction_ids, pause)?)
    }

    fn lookup_lag(&self) -> BatchResult<LookupLag> {
        Ok(lookup_lag(&self.store)?)
    }

    fn found_at_ledger(&self, transaction_ids: &[ItemId]) -> BatchResult<Vec<ServiceId>> {
        Ok(found_at_ledger(&self.store, transaction_ids)?.into_iter().collect())
    }

    fn absent_at_ledger(&self, transaction_ids: &[ItemId]) -> BatchResult<EndedDependents> {
        Ok(absent_at_ledger(&self.store, transaction_ids)?)
    }

    fn hold_missing(&self, limit: Duration) -> BatchResult<usize> {
        Ok(hold_missing(&self.store, limit)?)
    }
}

impl GroupItem for IncompleteBatch {
    fn services(&self) -> impl Iterator<Item = &ServiceId> {
        iter::once(&self.1)
    }
}

/// Records that the ledger has these transactions. Returns the services that got a next batch.
///
/// Batches of services that another transaction keeps locked are left for the next time. If many batches of one service
/// are affected, most of them are also left until those that were freed are in lanes; the ledger is then asked again.
fn found_at_ledger(
    store: &Store,
    transaction_ids: &[ItemId],
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let mut ready = BTreeSet::new();
    let mut left = Vec::new();
    for id in transaction_ids {
        loop {
            let all = find_that_miss(&mut *store.pools.read()?, id, STEP)?;
            let services: BTreeSet<&ServiceId> = all.iter().map(|(_, service)| service).collect();
            let due = find_due_services(&mut *store.pools.read()?, &store.scheduler, services)?;
            let batches: Vec<IncompleteBatch> =
                all.iter().filter(|(_, service)| due.contains(service)).cloned().collect();
            if batches.len() < all.len() {
                left.push(*id);
            }
            let found = commit_group(store, &batches, |connection, batches| {
                found_by(store, connection, batches, id)
            });
            let outcomes = found.without_locked()?;
            let done = outcomes.iter().flatten().count();
            ready.extend(outcomes.into_iter().flatten().flatten());
            if batches.len() < STEP || done == 0 {
                break;
            }
        }
    }
    if !left.is_empty() {
        look_up_again(store, &left, Duration::ZERO)?;
    }
    Ok(ready)
}

/// Records that the ledger has a transaction that these batches miss. Returns the service of each, if it got a next
/// batch.
fn found_by(
    store: &Store,
    connection: &mut Connection,
    batches: &[IncompleteBatch],
    id: &ItemId,
) -> Result<Vec<Option<ServiceId>>, StoreError> {
    let (now, locked) = (store.now(), lock_services_of(connection, batches)?);
    mark_found(connection, &batches.iter().map(|(seq, _)| (*seq, *id)).collect::<Vec<_>>(), now)?;
    let (ready, _) =
        give_positions_if_complete(connection, &store.scheduler, batches, &locked, now)?;
    if batches.len() == STEP {
        begin_turns(connection, &store.scheduler, &locked)?;
    }
    let is_ready =
        |(_, service): &IncompleteBatch| ready.contains(service).then(|| service.clone());
    Ok(batches.iter().map(is_ready).collect())
}

/// Records that the ledger does not have these transactions. If only invalid batches contain one of them, the batches
/// that depend on it end. Returns how many ended, and the services that got a next batch.
///
/// Batches of services that another transaction keeps locked are left for the next answer.
fn absent_at_ledger(
    store: &Store,
    transaction_ids: &[ItemId],
) -> Result<EndedDependents, StoreError> {
    let mut all = EndedDependents::default();
    for id in transaction_ids {
        let mut after = i64::MIN;
        loop {
            let batches = find_that_ask(&mut *store.pools.read()?, id, after, STEP)?;
            let absent = commit_group(store, &batches, |connection, batches| {
                absent_for(store, connection, batches, id)
            });
            for evaluated in absent.without_locked()?.into_iter().flatten() {
                all.ended += evaluated.ended;
                all.ready.extend(evaluated.ready);
            }
            match batches.last() {
                Some((last, _)) if batches.len() == STEP => after = *last,
                _ => break,
            }
        }
    }
    Ok(all)
}

/// Records that the ledger does not have a transaction that these batches miss. Returns an outcome for each; the first
/// one contains the result for all.
fn absent_for(
    store: &Store,
    connection: &mut Connection,
    batches: &[IncompleteBatch],
    id: &ItemId,
) -> Result<Vec<EndedDependents>, StoreError> {
    let (now, locked) = (store.now(), lock_services_of(connection, batches)?);
    let evaluated =
        evaluate_incomplete(connection, &store.scheduler, batches, &[*id], &locked, now)?;
    let mut outcomes = vec![EndedDependents::default(); batches.len()];
    if let Some(first) = outcomes.first_mut() {
        first.ended = evaluated.ended;
        first.ready = evaluated.ready.into_iter().collect();
    }
    Ok(outcomes)
}

/// Holds batches for which a transaction has been missing for longer than `longest`, unless it has arrived. Returns
/// their number.
fn hold_missing(store: &Store, longest: Duration) -> Result<usize, StoreError> {
    let before = store.now().minus(longest);
    let limit = humantime(longest);
    let mut held = 0;
    loop {
        let batches = find_overdue(&mut *store.pools.read()?, before, STEP)?;
        let overdue = commit_group(store, &batches, |connection, batches| {
            let locked = lock_services_of(connection, batches)?;
            let (scheduler, now) = (&store.scheduler, store.now());
            let held = hold_overdue(connection, scheduler, batches, &locked, &limit, now)?;
            Ok((0..batches.len()).map(|number| number < held).collect())
        });
        let outcomes: Vec<Option<bool>> = overdue.without_locked()?;
        let done = outcomes.iter().flatten().count();
        // Batches that were not held got their positions, and there may be many of them.
        let any_freed = outcomes.iter().flatten().any(|held| !held);
        held += outcomes.into_iter().flatten().filter(|held| *held).count();
        if batches.len() < STEP || done == 0 || any_freed {
            return Ok(held);
        }
    }
}

fn lock_services_of(
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
