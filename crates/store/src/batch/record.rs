use std::{
    collections::{BTreeSet, HashMap},
    iter,
};

use grid_batch_core::batches::{
    BatchState, Change, ChangeOutcome, Event, Progress, Stale, TransitionError, transition,
};
use grid_batch_core::events::EventKind;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::queue::Strategy;
use grid_batch_core::{ServiceId, Timestamp};

use super::{
    AttemptLog, BatchKey,
    free::{fill, put_in_doubt},
    key_rows,
    lane::{Lane, Lanes},
    lock_lanes, lock_services,
    overtaken::hold_overtaken,
    write::{Followers, write},
};
use crate::{
    events::{NewEvent, insert_events},
    scheduling::insert_changed,
    sql::{
        Connection, EventSink, Scheduler, Statement, Store, StoreError,
        groups::{GroupItem, GroupResult, commit_group},
        result_row,
        rows::{batch_id, progress, service_id},
    },
};

impl Store {
    /// Records changes of batches in one commit, and returns the outcome of each. When a batch ends,
    /// the next one of its service becomes its head.
    ///
    /// If another transaction keeps a row of a service locked, changes of the other services are
    /// recorded in commits of their own, and the error names the locked ones. Recording a change again
    /// is safe.
    pub fn record(&self, changes: &[Change]) -> Result<Vec<ChangeOutcome>, StoreError> {
        record(self, changes).complete()
    }
}

/// Records changes, in one commit unless rows of their services are locked.
pub(crate) fn record(store: &Store, changes: &[Change]) -> GroupResult<ChangeOutcome> {
    commit_group(store, changes, |connection, changes| {
        lock_services(connection, changes.iter().map(|change| &change.service_id))?;
        record_locked(connection, &store.scheduler, changes, AttemptLog::default(), store.now())
    })
}

impl GroupItem for Change {
    fn services(&self) -> impl Iterator<Item = &ServiceId> {
        iter::once(&self.service_id)
    }
}

/// Records changes of services that are locked.
pub(crate) fn record_locked<'a>(
    connection: &mut Connection,
    scheduler: &Scheduler,
    changes: &'a [Change],
    mut log: AttemptLog<'a>,
    now: Timestamp,
) -> Result<Vec<ChangeOutcome>, StoreError> {
    let batches: BTreeSet<BatchKey> = changes.iter().map(key).collect();
    let mut lanes = lock_lanes(connection, &batches)?;
    let elsewhere = find_batches_without_lane(connection, &batches, &lanes)?;
    let states: Vec<Result<BatchState, ChangeOutcome>> = changes
        .iter()
        .map(|change| match lanes.get_mut(&key(change)) {
            Some(lane) => apply(lane, change, now, &mut log),
            None => Err(refuse(change, elsewhere.get(&key(change)))),
        })
        .collect();
    let Followers { followed, restored, parked } = write(connection, scheduler, &lanes, now)?;
    log.write(connection, scheduler.events(), now)?;
    put_in_doubt(connection, scheduler, restored, now)?;
    hold_overtaken(connection, scheduler, &lanes, now)?;
    adjust_lists(scheduler, changes, &states);
    let after_holds = fill_after_holds(connection, scheduler, lanes.values(), now)?;
    let states = record_late_commits(connection, scheduler, changes, states, now)?;
    let outcome = |(change, state): (&Change, Result<BatchState, ChangeOutcome>)| match state {
        Ok(state) => ChangeOutcome::Applied {
            state,
            next_waits: match state {
                _ if after_holds.contains(&change.service_id) => true,
                _ if parked.contains(&change.service_id) => true,
                _ if state.is_terminal() => followed.contains(&key(change)),
                _ => scheduler.strategy(&change.service_id).lets_others_go(state),
            },
        },
        Err(refused) => refused,
    };
    Ok(changes.iter().zip(states).map(outcome).collect())
}

/// Counts the commits and losses by which the size of lists is chosen.
fn adjust_lists(
    scheduler: &Scheduler,
    changes: &[Change],
    states: &[Result<BatchState, ChangeOutcome>],
) {
    let committed = states.iter().filter(|state| **state == Ok(BatchState::Committed));
    scheduler.lists().committed(committed.count());
    let is_lost = |(change, state): (&Change, &Result<_, _>)| {
        let absent = matches!(
            change.event,
            Event::Evidence { evidence: Evidence::Absent | Evidence::Lost, .. }
        );
        absent && state.is_ok()
    };
    if changes.iter().zip(states).any(is_lost) {
        scheduler.lists().lost();
    }
}

/// Fills the lanes of services with a batch that is held now, if it stops only batches that conflict with it. Returns
/// the services that got a next batch.
pub(crate) fn fill_after_holds<'a>(
    connection: &mut Connection,
    scheduler: &Scheduler,
    lanes: impl Iterator<Item = &'a Lane>,
    now: Timestamp,
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let (filled, left): (Vec<&Lane>, Vec<&Lane>) =
        lanes.filter(|lane| lane.is_held_now()).partition(|_| scheduler.keeps_positions());
    insert_changed(connection, scheduler, left.iter().map(|lane| lane.batch_seq), now)?;
    let overtakes = |lane: &&Lane| !scheduler.strategy(&lane.service_id).keeps_order();
    let services: BTreeSet<ServiceId> =
        filled.into_iter().filter(overtakes).map(|lane| lane.service_id.clone()).collect();
    fill(connection, scheduler, &services, now)
}

/// Records changes that are the first report that a batch was committed after it had ended as invalid.
fn record_late_commits(
    connection: &mut Connection,
    scheduler: &Scheduler,
    changes: &[Change],
    states: Vec<Result<BatchState, ChangeOutcome>>,
    now: Timestamp,
) -> Result<Vec<Result<BatchState, ChangeOutcome>>, StoreError> {
    let invalid = TransitionError::Ended { state: BatchState::Invalid };
    let ended_as_invalid = Err(ChangeOutcome::Stale(invalid.into()));
    let record = |(change, state): (&Change, _)| {
        let is_late_commit = state == ended_as_invalid && change.event.is_proof_of_commit();
        if is_late_commit
            && record_commit_after_invalid(connection, scheduler.events(), change, now)?
        {
            return Ok(Err(ChangeOutcome::Stale(Stale::CommittedAfterInvalid)));
        }
        Ok(state)
    };
    changes.iter().zip(states).map(record).collect()
}

/// The progress of batches that are in no lane, because they wait behind their head or have ended.
fn find_batches_without_lane(
    connection: &mut Connection,
    batches: &BTreeSet<BatchKey>,
    lanes: &Lanes,
) -> Result<HashMap<BatchKey, Progress>, StoreError> {
    let keys: BTreeSet<BatchKey> =
        batches.iter().filter(|key| !lanes.contains_key(*key)).cloned().collect();
    let rows: Vec<WithoutLaneRow> = connection.load_rows(
        "-- find_batches_without_lane
         select b.service_id, b.batch_id, b.ended_at is not null as ended, b.dlt_status, b.attempts
         from {x} join batches b on b.batch_id = x.batch_id and b.service_id = x.service_id",
        key_rows(&keys),
    )?;
    rows.into_iter()
        .map(|row| {
            let key = (service_id(&row.service_id)?, batch_id(&row.batch_id)?);
            Ok((key, progress(row.ended, row.dlt_status.as_deref(), row.attempts)?))
        })
        .collect()
}

result_row! {
    struct WithoutLaneRow {
        service_id: String,
        batch_id: Vec<u8>,
        ended: bool,
        dlt_status: Option<String>,
        attempts: i32,
    }
}

fn key(change: &Change) -> BatchKey {
    (change.service_id.clone(), change.batch_id)
}

fn apply<'a>(
    lane: &mut Lane,
    change: &'a Change,
    now: Timestamp,
    log: &mut AttemptLog<'a>,
) -> Result<BatchState, ChangeOutcome> {
    // Only taking a round hands out a batch.
    if change.event == Event::Taken {
        return Err(refuse(change, Some(&lane.progress)));
    }
    let applied = lane.apply(change, now).map_err(ChangeOutcome::Stale)?;
    log.add(lane, change, applied, now);
    Ok(lane.progress.state)
}

/// The outcome of a change that is not possible, because its batch is in no lane or its event is `Taken`.
fn refuse(change: &Change, progress: Option<&Progress>) -> ChangeOutcome {
    match progress {
        None => ChangeOutcome::NotFound,
        Some(progress) => match transition(*progress, change.event) {
            Err(error) => ChangeOutcome::Stale(error.into()),
            Ok(_) => {
                let (state, event) = (progress.state, change.event);
                ChangeOutcome::Stale(TransitionError::NotPossible { state, event }.into())
            }
        },
    }
}

/// Stores the first report that a batch which ended as invalid was committed. Returns whether this
/// change is that report.
fn record_commit_after_invalid(
    connection: &mut Connection,
    sink: &EventSink,
    change: &Change,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let source = match change.event {
        Event::Status { .. } => "the ledger's status",
        _ => "evidence",
    };
    let report = Statement::new(
        "-- insert_commit_after_invalid
         insert into commits_after_invalid (batch_seq, reported_at, source)
         select b.seq, ?, ? from batches b
         where b.batch_id = ? and b.service_id = ? and b.dlt_status = 'INVALID'
         on conflict (batch_seq) do nothing",
    )
    .long(now.as_micros())
    .text(source)
    .bytes(change.batch_id.as_bytes())
    .text(change.service_id.as_str());
    if connection.execute(&report)? == 0 {
        return Ok(false);
    }
    // The report is also stored as the batch's last error, which its details show.
    let show = Statement::new(
        "-- show_commit_after_invalid
         update batches as b
         set last_error = 'the batch ended as invalid, and the ledger reported later that it is committed'
         where b.batch_id = ? and b.service_id = ?
         returning seq, attempts",
    )
    .bytes(change.batch_id.as_bytes())
    .text(change.service_id.as_str());
    let shown: Vec<(i64, i32)> = connection.load_tuples(&show)?;
    let event = |(batch_seq, attempts): (i64, i32)| NewEvent {
        batch_seq,
        kind: EventKind::CommittedAfterInvalid,
        state: BatchState::Invalid,
        attempt: attempts.unsigned_abs(),
        detail: Some(source.to_owned()),
    };
    let events: Vec<NewEvent> = shown.into_iter().map(event).collect();
    insert_events(connection, sink, &events, now)?;
    Ok(true)
}
