//! The batches that wait for a batch. Those that the commit of its end does not evaluate are left to the job. Many
//! dependents of one service are freed in parts, so that a batch that is added meanwhile waits only for the parts
//! before it.

use std::collections::BTreeSet;

use grid_batch_core::{ServiceId, Timestamp};

use crate::sql::{
    Connection, Rows, Scheduler, Statement, StoreError, result_row,
    rows::{limit, service_id, service_rows},
};

/// A batch with its service and position.
pub(crate) type Positioned = (i64, ServiceId, i64);

/// Batches that wait for some other ones.
#[derive(Debug, Default)]
pub(crate) struct Dependents {
    /// Each with the batch that it waits for.
    pub(crate) waiting: Vec<(i64, Positioned)>,
    /// Whether there may be more.
    pub(crate) more: bool,
    /// Those in lanes.
    pub(crate) in_lanes: Vec<Positioned>,
}

/// Up to `count` waiting batches that wait for these, in the order of their positions for each, and separately all such
/// batches in lanes of these services.
pub(crate) fn find_dependents(
    connection: &mut Connection,
    blockers: &[i64],
    services: &BTreeSet<ServiceId>,
    count: usize,
) -> Result<Dependents, StoreError> {
    // The rows come in the order of the index. Sorting would have to read all of them.
    let statement = Statement::new(
        "-- find_dependents
         select w.blocker_seq, w.batch_seq, w.service_id, w.position
         from {x} join waiting_batches w on w.blocker_seq = x.batch_seq
         limit ?",
    )
    .rows(Rows::default().long("batch_seq", blockers.iter().copied()))
    .long(limit(count));
    let mut rows: Vec<DependentRow> = connection.load(&statement)?;
    let more = rows.len() >= count;
    rows.truncate(count);
    let waiting = rows.iter().map(DependentRow::read).collect::<Result<_, _>>()?;
    let in_lanes = find_dependents_in_lanes(connection, services, blockers)?;
    Ok(Dependents { waiting, more, in_lanes })
}

/// Up to `count` batches that wait for this one, after a position and batch.
pub(crate) fn find_waiting_of(
    connection: &mut Connection,
    blocker: i64,
    after: (i64, i64),
    count: usize,
) -> Result<Vec<Positioned>, StoreError> {
    let statement = Statement::new(
        "-- find_waiting_of
         select w.blocker_seq, w.batch_seq, w.service_id, w.position
         from waiting_batches w
         where w.blocker_seq = ? and (w.position, w.batch_seq) > (?, ?)
         order by w.blocker_seq, w.position, w.batch_seq limit ?",
    )
    .long(blocker)
    .long(after.0)
    .long(after.1)
    .long(limit(count));
    let rows: Vec<DependentRow> = connection.load(&statement)?;
    rows.iter().map(|row| Ok(row.read()?.1)).collect()
}

/// The batches in lanes of these services that wait for one of these. They exist because a strategy sends a batch while
/// or together with an earlier one that it conflicts with.
pub(crate) fn find_dependents_in_lanes(
    connection: &mut Connection,
    services: &BTreeSet<ServiceId>,
    blockers: &[i64],
) -> Result<Vec<Positioned>, StoreError> {
    let blockers: BTreeSet<i64> = blockers.iter().copied().collect();
    let rows: Vec<DependentRow> = connection.load_rows(
        "-- find_dependents_in_lanes
         select s.blocker_seq, s.batch_seq, s.service_id, s.position
         from {x} join lanes s on s.service_id = x.service_id
         where s.busy and s.blocker_seq is not null",
        service_rows(services),
    )?;
    let waiting = rows.into_iter().filter(|row| blockers.contains(&row.blocker_seq));
    waiting.map(|row| Ok(row.read()?.1)).collect()
}

result_row! {
    struct DependentRow {
        blocker_seq: i64,
        batch_seq: i64,
        service_id: String,
        position: i64,
    }
}

impl DependentRow {
    fn read(&self) -> Result<(i64, Positioned), StoreError> {
        Ok((self.blocker_seq, (self.batch_seq, service_id(&self.service_id)?, self.position)))
    }
}

/// Leaves the dependents of these batches to the job.
pub(crate) fn insert_changed(
    connection: &mut Connection,
    scheduler: &Scheduler,
    seqs: impl IntoIterator<Item = i64>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut seqs: Vec<i64> = seqs.into_iter().collect();
    if seqs.is_empty() {
        return Ok(());
    }
    seqs.sort_unstable();
    seqs.dedup();
    // If a row has changed, a job that has read it before does not remove it.
    connection.execute_rows(
        "-- insert_changed_blockers
         insert into changed_blockers (batch_seq, changed_at)
         select batch_seq, changed_at from {x} where true order by batch_seq
         on conflict (batch_seq) do update set changed_at = changed_blockers.changed_at + 1",
        Rows::default()
            .long("batch_seq", seqs.iter().copied())
            .long("changed_at", seqs.iter().map(|_| now.as_micros())),
    )?;
    scheduler.leave_dependents();
    Ok(())
}

result_row! {
    /// A batch whose dependents are still to be evaluated.
    #[derive(Debug)]
    pub(crate) struct ChangedBlocker {
        pub(crate) batch_seq: i64,
        pub(crate) changed_at: i64,
        pub(crate) service_id: String,
        /// Whether it has ended; otherwise it got its position.
        pub(crate) ended: bool,
    }
}

/// Up to `count` of them after `after`.
pub(crate) fn find_changed(
    connection: &mut Connection,
    after: i64,
    count: usize,
) -> Result<Vec<ChangedBlocker>, StoreError> {
    let statement = Statement::new(
        "-- find_changed_blockers
         select c.batch_seq, c.changed_at, b.service_id, b.ended_at is not null as ended
         from changed_blockers c join batches b on b.seq = c.batch_seq
         where c.batch_seq > ? order by c.batch_seq limit ?",
    )
    .long(after)
    .long(limit(count));
    connection.load(&statement)
}

/// Removes one, unless it has changed since it was read.
pub(crate) fn remove_changed(
    connection: &mut Connection,
    changed: &ChangedBlocker,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- remove_changed_blocker
         delete from changed_blockers where batch_seq = ? and changed_at = ?",
    )
    .long(changed.batch_seq)
    .long(changed.changed_at);
    connection.execute(&statement).map(drop)
}

/// How many dependents are freed at once.
pub(crate) const DEPENDENTS_AT_ONCE: usize = 128;

/// Those of these services with more dependents to free, whose batches that were freed with the last part are in lanes
/// now.
pub(crate) fn find_due_services<'a>(
    connection: &mut Connection,
    scheduler: &Scheduler,
    services: impl IntoIterator<Item = &'a ServiceId>,
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let mut due = BTreeSet::new();
    for service_id in services {
        if let Some(until) = scheduler.turn_of(service_id) {
            if first_free_position(connection, service_id)?.is_some_and(|first| first <= until) {
                continue;
            }
            scheduler.end_turn(service_id);
        }
        due.insert(service_id.clone());
    }
    Ok(due)
}

/// Records that a part of the dependents of locked services was freed and there may be more.
pub(crate) fn begin_turns(
    connection: &mut Connection,
    scheduler: &Scheduler,
    services: &BTreeSet<ServiceId>,
) -> Result<(), StoreError> {
    for service_id in services {
        if let Some(until) = last_free_position(connection, service_id)? {
            scheduler.begin_turn(service_id, until);
        }
    }
    Ok(())
}

fn first_free_position(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Option<i64>, StoreError> {
    let sql = "-- first_free_position
         select w.position from waiting_batches w
         where w.service_id = ? and w.position is not null and w.blocker_seq is null
         order by w.service_id, w.position limit 1";
    load_position(connection, sql, service_id)
}

fn last_free_position(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Option<i64>, StoreError> {
    let sql = "-- last_free_position
         select w.position from waiting_batches w
         where w.service_id = ? and w.position is not null and w.blocker_seq is null
         order by w.service_id desc, w.position desc limit 1";
    load_position(connection, sql, service_id)
}

fn load_position(
    connection: &mut Connection,
    sql: &'static str,
    service_id: &ServiceId,
) -> Result<Option<i64>, StoreError> {
    let statement = Statement::new(sql).text(service_id.as_str());
    Ok(connection.load_column(&statement)?.into_iter().next())
}
