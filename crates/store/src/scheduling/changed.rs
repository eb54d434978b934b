//! Batches whose dependents are still to be evaluated.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Text},
};
use grid_batch_core::Timestamp;

use crate::sql::{Connection, Rows, Scheduler, Statement, StoreError, rows::limit};

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
    // A row that changed is not removed by a job that has read it before.
    let statement = Statement::new(
        connection.dialect(),
        "-- insert_changed_blockers
         insert into changed_blockers (batch_seq, changed_at)
         select batch_seq, changed_at from {x} where true order by batch_seq
         on conflict (batch_seq) do update set changed_at = changed_blockers.changed_at + 1",
    )
    .rows(
        Rows::default()
            .long("batch_seq", seqs.iter().copied())
            .long("changed_at", seqs.iter().map(|_| now.as_micros())),
    );
    connection.execute(&statement)?;
    scheduler.leave_dependents();
    Ok(())
}

/// A batch whose dependents are still to be evaluated.
#[derive(QueryableByName, Debug)]
pub(crate) struct ChangedBlocker {
    #[diesel(sql_type = BigInt)]
    pub(crate) batch_seq: i64,
    #[diesel(sql_type = BigInt)]
    pub(crate) changed_at: i64,
    #[diesel(sql_type = Text)]
    pub(crate) service_id: String,
    /// Not set: it got its position.
    #[diesel(sql_type = Bool)]
    pub(crate) ended: bool,
}

/// Up to `count` of them, from the one after `after`.
pub(crate) fn find_changed(
    connection: &mut Connection,
    after: i64,
    count: usize,
) -> Result<Vec<ChangedBlocker>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- find_changed_blockers
         select c.batch_seq, c.changed_at, b.service_id, b.ended_at is not null as ended
         from changed_blockers c join batches b on b.seq = c.batch_seq
         where c.batch_seq > ? order by c.batch_seq limit ?",
    )
    .long(after)
    .long(limit(count));
    connection.load(&statement)
}

/// Removes one, unless it changed since it was read.
pub(crate) fn remove_changed(
    connection: &mut Connection,
    changed: &ChangedBlocker,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- remove_changed_blocker
         delete from changed_blockers where batch_seq = ? and changed_at = ?",
    )
    .long(changed.batch_seq)
    .long(changed.changed_at);
    connection.execute(&statement).map(drop)
}
