//! Handles the end of batches in services with several lanes: their dependents are evaluated, and the lanes are filled.

use std::collections::{BTreeSet, HashMap};

use grid_batch_core::batches::{Change, Event};
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use super::{AttemptLog, BatchKey, RESTORED, lock_lanes, waiting::begin_waiting_holds, write_open};
use crate::{
    halts::{Stops, stop_following},
    missing::{IncompleteBatch, insert_missing},
    scheduling::{
        Evaluation, InstalledRow, Missing, Positioned, PositionedBatch, evaluate, fill_lanes,
        find_declared, find_dependents, insert_changed, remove_addresses, write_blockers,
    },
    sql::{
        Connection, Scheduler, StoreError,
        rows::{batch_id, service_id},
    },
};

/// Limit on the number of dependents that one commit evaluates. The job evaluates the others.
const MOST_DEPENDENTS: usize = 256;

/// A batch that has ended, with its position.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) batch: Positioned,
    pub(crate) stops: Stops,
}

/// Frees the batches that waited for ended batches of locked services, and fills the lanes. Returns the services that
/// got a next batch.
pub(super) fn follow_ends(
    connection: &mut Connection,
    scheduler: &Scheduler,
    ended: &[Ended],
    now: Timestamp,
) -> Result<BTreeSet<ServiceId>, StoreError> {
    if ended.is_empty() {
        return Ok(BTreeSet::new());
    }
    let (over, stopping): (Vec<&Ended>, Vec<&Ended>) =
        ended.iter().partition(|ended| ended.stops == Stops::Nothing);
    let stopping: Vec<(Positioned, Stops)> =
        stopping.into_iter().map(|ended| (ended.batch.clone(), ended.stops)).collect();
    stop_following(connection, scheduler, &stopping, now)?;
    let over: Vec<Positioned> = over.into_iter().map(|ended| ended.batch.clone()).collect();
    let services = ended.iter().map(|ended| ended.batch.1.clone()).collect();
    release_following(connection, scheduler, &over, services, now)
}

/// Frees the batches that waited for ended batches which do not stop them, or not any more, and fills the lanes of
/// services.
pub(crate) fn release_following(
    connection: &mut Connection,
    scheduler: &Scheduler,
    ended: &[Positioned],
    services: BTreeSet<ServiceId>,
    now: Timestamp,
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let seqs: Vec<i64> = ended.iter().map(|(seq, ..)| *seq).collect();
    let declared = find_declared(connection, ended)?;
    remove_addresses(connection, &declared)?;
    if !scheduler.keeps_positions() {
        insert_changed(connection, scheduler, seqs, now)?;
        return Ok(BTreeSet::new());
    }
    let mut with_next = free_dependents(connection, scheduler, &seqs, &services, now)?;
    with_next.extend(fill(connection, scheduler, &services, now)?);
    Ok(with_next)
}

/// Evaluates the batches of locked services that wait for these, and leaves the others to the job. Returns the services
/// in which one in a lane was evaluated.
fn free_dependents(
    connection: &mut Connection,
    scheduler: &Scheduler,
    blockers: &[i64],
    locked: &BTreeSet<ServiceId>,
    now: Timestamp,
) -> Result<BTreeSet<ServiceId>, StoreError> {
    if blockers.is_empty() {
        return Ok(BTreeSet::new());
    }
    let dependents = find_dependents(connection, blockers, locked, MOST_DEPENDENTS)?;
    let is_locked = |(_, (_, service_id, _)): &&(i64, Positioned)| locked.contains(service_id);
    let (own, others): (Vec<_>, Vec<_>) = dependents.waiting.iter().partition(is_locked);
    let mut left: BTreeSet<i64> = if dependents.more {
        blockers.iter().copied().collect()
    } else {
        others.iter().map(|(blocker, _)| *blocker).collect()
    };
    let mut own: Vec<Positioned> = own.into_iter().map(|(_, batch)| batch.clone()).collect();
    let with_next =
        dependents.in_lanes.iter().map(|(_, service_id, _)| service_id.clone()).collect();
    own.extend(dependents.in_lanes);
    let evaluation = evaluate_again(connection, scheduler, &own, locked, now)?;
    left.extend(evaluation.blockers_of_ending());
    insert_changed(connection, scheduler, left, now)?;
    Ok(with_next)
}

/// Finds what these batches of locked services wait for now. The caller must end those that are to end.
pub(crate) fn evaluate_again(
    connection: &mut Connection,
    scheduler: &Scheduler,
    batches: &[Positioned],
    locked: &BTreeSet<ServiceId>,
    now: Timestamp,
) -> Result<Evaluation, StoreError> {
    evaluate_answered(connection, scheduler, batches, &[], locked, now)
}

/// Finds what these batches of locked services wait for, given that the ledger does not have the transactions in
/// `absent`, which they miss. The caller must end those that are to end.
pub(crate) fn evaluate_answered(
    connection: &mut Connection,
    scheduler: &Scheduler,
    batches: &[Positioned],
    absent: &[ItemId],
    locked: &BTreeSet<ServiceId>,
    now: Timestamp,
) -> Result<Evaluation, StoreError> {
    let batches = find_declared(connection, batches)?;
    let evaluation = evaluate(connection, &batches, locked, absent)?;
    write_blockers(connection, &batches, &evaluation.blockers)?;
    write_missing(connection, &batches, &evaluation.missing, now)?;
    insert_changed(connection, scheduler, evaluation.left.iter().copied(), now)?;
    Ok(evaluation)
}

/// Records the transactions that batches with positions miss, so that the ledger is asked.
fn write_missing(
    connection: &mut Connection,
    batches: &[PositionedBatch],
    missing: &HashMap<i64, Vec<Missing>>,
    now: Timestamp,
) -> Result<(), StoreError> {
    if missing.is_empty() {
        return Ok(());
    }
    let asking = batches.iter().filter_map(|batch| {
        Some(((batch.seq, batch.service_id.clone()), missing.get(&batch.seq)?.as_slice()))
    });
    let asking: Vec<(IncompleteBatch, &[Missing])> = asking.collect();
    let rows: Vec<_> = asking.iter().map(|(batch, missing)| (batch, *missing)).collect();
    insert_missing(connection, &rows, &HashMap::new(), now)
}

/// Installs the next batches of locked services in their lanes. Returns the services that got one.
pub(crate) fn fill(
    connection: &mut Connection,
    scheduler: &Scheduler,
    services: &BTreeSet<ServiceId>,
    now: Timestamp,
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let installed = fill_lanes(connection, scheduler, services)?;
    let held = installed.iter().filter(|row| row.held);
    begin_waiting_holds(
        connection,
        held.map(|row| (row.service_id.as_str(), row.lane, row.batch_seq)),
    )?;
    let restored = installed.iter().filter(|row| row.restored);
    let restored = restored.map(InstalledRow::key).collect::<Result<_, _>>()?;
    if services.iter().any(|service_id| scheduler.turn_of(service_id).is_some()) {
        // The job frees more of the dependents when there is room for them.
        scheduler.leave_dependents();
    }
    put_in_doubt(connection, scheduler, restored, now)?;
    installed.iter().map(|row| service_id(&row.service_id)).collect()
}

impl InstalledRow {
    pub(crate) fn key(&self) -> Result<BatchKey, StoreError> {
        Ok((service_id(&self.service_id)?, batch_id(&self.batch_id)?))
    }
}

/// Puts next batches that were stored before the database was restored in doubt, because they may have been sent in the
/// time that was lost. No batch ends, so no lane is filled and no dependent is freed.
pub(super) fn put_in_doubt(
    connection: &mut Connection,
    scheduler: &Scheduler,
    heads: BTreeSet<BatchKey>,
    now: Timestamp,
) -> Result<(), StoreError> {
    if heads.is_empty() {
        return Ok(());
    }
    let mut lanes = lock_lanes(connection, &heads)?;
    let mut log = AttemptLog::default();
    let restored = |(service_id, batch_id)| Change {
        error: Some(RESTORED.to_owned()),
        ..Change::new(service_id, batch_id, Event::DatabaseRestored)
    };
    let changes: Vec<Change> = heads.into_iter().map(restored).collect();
    for change in &changes {
        if let Some(lane) = lanes.get_mut(&(change.service_id.clone(), change.batch_id))
            && let Ok(applied) = lane.apply(change, now)
        {
            log.add(lane, change, applied, now);
        }
    }
    write_open(connection, &lanes.values().filter(|lane| lane.changed).collect::<Vec<_>>())?;
    log.write(connection, scheduler.events(), now)
}
