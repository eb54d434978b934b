//! The job that evaluates batches that waited for ended ones, if the commit of the end could not: dependents of other
//! services, and those beyond the limit of one commit.

use std::collections::BTreeSet;

use grid_batch_core::batches::BatchState;
use grid_batch_core::queue::Strategy;
use grid_batch_core::{ItemId, ServiceId};

use crate::{
    batch::{Unsendable, end_unsendable, evaluate_again, fill, with_locked},
    halts::finish_halts,
    missing::{IncompleteBatch, find_missing_dependents, give_positions_if_complete},
    scheduling::{
        ChangedBlocker, DEPENDENTS_AT_ONCE, Positioned, begin_turns, find_changed,
        find_dependents_in_lanes, find_due_services, find_waiting_of, remove_changed,
    },
    sql::{Connection, Store, StoreError, rows::service_id},
};

/// The number of ended batches that are read at once.
const CHANGED_AT_ONCE: usize = 256;

/// The number of dependents that one commit evaluates.
const STEP: usize = DEPENDENTS_AT_ONCE;

/// The result of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreedDependents {
    /// The services that got a next batch.
    pub ready: BTreeSet<ServiceId>,
    /// Whether dependents are left that can be evaluated now.
    pub more: bool,
}

impl Store {
    /// Evaluates up to `limit` batches that waited for ended ones and that the commit of the end did not evaluate,
    /// because they belong to other services or were too many. Returns the services that got a next batch.
    ///
    /// Any instance may call it, whichever services it claims, and several at once, because evaluating a batch twice
    /// changes nothing. If there is nothing to do, it costs one read. Batches of services that another transaction
    /// keeps locked are left for a later call. If a service has many dependents, most of them are left until those that
    /// were freed are in lanes.
    pub fn free_dependents(&self, limit: usize) -> Result<FreedDependents, StoreError> {
        let mut freed = FreedDependents::default();
        if !self.scheduler.keeps_positions() {
            finish_halts(self, &mut freed)?;
            return Ok(freed);
        }
        let (mut left, mut last) = (limit, i64::MIN);
        loop {
            let changed = find_changed(&mut *self.pools.read()?, last, CHANGED_AT_ONCE)?;
            for changed in &changed {
                last = changed.batch_seq;
                let evaluated = free_dependents_of(self, changed, left, &mut freed)?;
                left = left.saturating_sub(evaluated.max(1));
                if left == 0 {
                    freed.more = true;
                    return Ok(freed);
                }
            }
            if changed.len() < CHANGED_AT_ONCE {
                finish_halts(self, &mut freed)?;
                return Ok(freed);
            }
        }
    }

    /// The batches that this process has ended while they waited since the last call, with their states: they depend on
    /// an invalid batch, an operator has ended the followers of one, or they were sent before their turns and are
    /// committed. A repeated commit may name a batch twice.
    pub fn take_ended_waiting(&self) -> Vec<(ItemId, BatchState)> {
        self.scheduler.take_ended()
    }

    /// Whether this process has left work to [`free_dependents`](Self::free_dependents) since the last call. It only
    /// saves time: call `free_dependents` at intervals to find work that other processes leave.
    pub fn dependents_wait(&self) -> bool {
        self.scheduler.take_left_dependents()
    }

    /// Evaluates everything that waits for an ended batch, until nothing is left to do now.
    pub(crate) fn free_all_dependents(&self) -> Result<(), StoreError> {
        const STEP: usize = 256;
        while self.free_dependents(STEP)?.more {}
        Ok(())
    }
}

/// Evaluates the batches that wait for one batch, with one commit per step. Returns how many dependents it evaluated.
fn free_dependents_of(
    store: &Store,
    changed: &ChangedBlocker,
    limit: usize,
    freed: &mut FreedDependents,
) -> Result<usize, StoreError> {
    let (mut evaluated, mut after) = (0, (i64::MIN, i64::MIN));
    let mut any_left = false;
    while evaluated < limit {
        let step = free_step(store, changed, after, any_left)?;
        freed.ready.extend(step.ready);
        evaluated += step.evaluated;
        any_left |= step.any_locked;
        match step.next {
            Some(next) => after = next,
            None => break,
        }
    }
    Ok(evaluated)
}

/// The result of one commit.
struct FreeStep {
    ready: BTreeSet<ServiceId>,
    evaluated: usize,
    /// Whether dependents of locked services were left out.
    any_locked: bool,
    /// The position after which the next step reads; `None`: nothing is left.
    next: Option<(i64, i64)>,
}

/// Evaluates the dependents after `after`, and batches that miss one of the batch's transactions. The service of the
/// changed batch is also locked, because the batch may be ending now in a commit that did not see batches that have
/// begun to wait since.
fn free_step(
    store: &Store,
    changed: &ChangedBlocker,
    after: (i64, i64),
    any_left: bool,
) -> Result<FreeStep, StoreError> {
    let own = service_id(&changed.service_id)?;
    let seen = SeenDependents::read(&mut *store.pools.read()?, changed, after)?;
    let mut services = seen.services();
    services.insert(own.clone());
    with_locked(store, &services, |connection, free| {
        if !free.contains(&own) {
            return Ok(FreeStep {
                ready: BTreeSet::new(),
                evaluated: 0,
                any_locked: true,
                next: None,
            });
        }
        // It may have ended since it was read.
        let present = find_changed(connection, changed.batch_seq.saturating_sub(1), 1)?;
        let present = present.iter().find(|row| row.batch_seq == changed.batch_seq);
        let changed = present.unwrap_or(changed);
        let SeenDependents { waiting, missing } = SeenDependents::read(connection, changed, after)?;
        let (all_waiting, all_missing) = (waiting.len(), missing.len());
        let last = waiting.last().map(|(seq, _, position)| (*position, *seq));
        let scheduler = &store.scheduler;
        let due = find_due_services(connection, scheduler, free)?;
        // If no batch may overtake another, the first dependents may have to precede those that are free.
        let may_be_freed = |service_id: &ServiceId| {
            due.contains(service_id)
                || free.contains(service_id) && scheduler.strategy(service_id).keeps_order()
        };
        let mut waiting: Vec<Positioned> =
            waiting.into_iter().filter(|it| may_be_freed(&it.1)).collect();
        let missing: Vec<IncompleteBatch> =
            missing.into_iter().filter(|it| due.contains(&it.1)).collect();
        let any_locked = free.len() < services.len()
            || (waiting.len(), missing.len()) != (all_waiting, all_missing);
        let own_service = BTreeSet::from([own.clone()]);
        let in_lanes = if changed.ended {
            find_dependents_in_lanes(connection, &own_service, &[changed.batch_seq])?
        } else {
            Vec::new()
        };
        if any_locked && waiting.is_empty() && missing.is_empty() && in_lanes.is_empty() {
            let ready = BTreeSet::new();
            let next = last.filter(|_| all_waiting == STEP && free.len() < services.len());
            return Ok(FreeStep { ready, evaluated: 0, any_locked, next });
        }
        let freed_in_lane = (!in_lanes.is_empty()).then(|| own.clone());
        waiting.extend(in_lanes);
        let mut ready = evaluate_and_end(store, connection, &waiting, &missing, free)?;
        ready.extend(freed_in_lane);
        ready.extend(fill(connection, scheduler, free, store.now())?);
        if all_waiting == STEP || all_missing == STEP {
            let evaluated = waiting.iter().map(|it| &it.1).chain(missing.iter().map(|it| &it.1));
            begin_turns(connection, scheduler, &evaluated.cloned().collect())?;
        }
        // Batches that missed something are not found again.
        let more_missing = all_missing == STEP && !missing.is_empty();
        let next = (all_waiting == STEP || more_missing).then(|| last.unwrap_or(after));
        if next.is_none() && !any_locked && !any_left {
            remove_changed(connection, changed)?;
        }
        Ok(FreeStep { ready, evaluated: waiting.len() + missing.len(), any_locked, next })
    })
}

/// Finds what these batches of locked services wait for now, and ends those that must not be sent.
fn evaluate_and_end(
    store: &Store,
    connection: &mut Connection,
    waiting: &[Positioned],
    missing: &[IncompleteBatch],
    locked: &BTreeSet<ServiceId>,
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let (scheduler, now) = (&store.scheduler, store.now());
    let evaluation = evaluate_again(connection, scheduler, waiting, locked, now)?;
    let ending: Vec<Unsendable> = evaluation.ending.into_iter().collect();
    end_unsendable(connection, scheduler, &ending, now)?;
    let (ready, _) = give_positions_if_complete(connection, scheduler, missing, locked, now)?;
    Ok(ready)
}

/// The batches that may be freed by another one.
struct SeenDependents {
    /// Those that wait for it.
    waiting: Vec<Positioned>,
    /// Those that miss one of its transactions.
    missing: Vec<IncompleteBatch>,
}

impl SeenDependents {
    fn read(
        connection: &mut Connection,
        changed: &ChangedBlocker,
        after: (i64, i64),
    ) -> Result<Self, StoreError> {
        Ok(Self {
            waiting: find_step(connection, changed, after)?,
            missing: find_missing_dependents(connection, changed.batch_seq, STEP)?,
        })
    }

    fn services(&self) -> BTreeSet<ServiceId> {
        let waiting = self.waiting.iter().map(|batch| batch.1.clone());
        waiting.chain(self.missing.iter().map(|(_, service_id)| service_id.clone())).collect()
    }
}

/// The dependents of an ended batch. A batch that only got its position still stops its dependents.
fn find_step(
    connection: &mut Connection,
    changed: &ChangedBlocker,
    after: (i64, i64),
) -> Result<Vec<Positioned>, StoreError> {
    if changed.ended {
        find_waiting_of(connection, changed.batch_seq, after, STEP)
    } else {
        Ok(Vec::new())
    }
}
