use std::time::Duration;

use diesel::prelude::*;
use grid_batch_core::batches::{Removable, Removed, RetentionCursor, RetentionStore};
use grid_batch_core::{BatchResult, Timestamp};

use crate::{
    events::{remove_events_of, remove_groups},
    service_history::keep_past_transactions,
    sql::{Connection, Rows, Statement, Store, StoreError, rows::limit, schema::batches},
};

/// No batch waits for it any more, and it is not an anchor: in a service whose history is recorded, the last two
/// batches that were sent and committed are anchors.
const IS_NOT_NEEDED: &str = "(
    select count(*) from halts h where h.batch_seq = b.seq) = 0 and (
    select count(*) from changed_blockers c where c.batch_seq = b.seq) = 0 and (
    b.dlt_status is null or b.dlt_status <> 'COMMITTED' or b.attempts = 0 or (
    select count(*) from service_histories h where h.service_id = b.service_id) = 0 or (
    select n.seq from batches n
    where n.service_id = b.service_id and n.created_at > b.created_at
        and n.dlt_status = 'COMMITTED' and n.attempts > 0
    order by n.created_at limit 1 offset 1) is not null)";

/// A reader may not have read a younger event of the batch.
const HAS_NO_EVENT_SINCE: &str = "(
    select count(*) from batch_events e where e.batch_seq = b.seq and e.at >= ?) = 0";

/// How many groups of events are removed for each batch that is examined. A single batch that is submitted several
/// times has about this many.
const GROUPS_A_BATCH: usize = 16;

impl RetentionStore for Store {
    fn start_retention(&self, interval: Duration) -> BatchResult<bool> {
        let now = self.now();
        let latest = now.minus(interval).as_micros();
        let statement = Statement::new(
            "-- start_retention
             update database_state set retention_at = ?
             where id = 1 and (retention_at is null or retention_at <= ? or retention_at > ?)",
        )
        .long(now.as_micros())
        .long(latest)
        .long(/* written before the clock was set back */ now.as_micros());
        Ok(self.pools.write()?.execute(&statement)? > 0)
    }

    fn remove_ended_before(
        &self,
        age: Duration,
        from: Option<RetentionCursor>,
        limit: usize,
    ) -> BatchResult<Removed> {
        Ok(self.remove_ended(self.now().minus(age), from, limit)?)
    }
}

impl Store {
    /// Removes batches that ended before `before`, with their bytes and everything that is stored
    /// about them.
    ///
    /// One step examines at most `count` batches, the oldest first, in one commit. It never removes an open batch or
    /// the latest batch of a withdrawal. A removed batch that is added again counts as new, so clients must not repeat
    /// requests that are older than `before`.
    ///
    /// The last step is the one that finds only batches that were stored after `before`, because the following ones are
    /// even younger.
    pub fn remove_ended(
        &self,
        before: Timestamp,
        from: Option<RetentionCursor>,
        count: usize,
    ) -> Result<Removed, StoreError> {
        let now = self.now();
        self.pools.write()?.write_transaction(|connection| {
            remove_groups(connection, before, count.saturating_mul(GROUPS_A_BATCH))?;
            let window = RetentionWindow::load(connection, from, count)?;
            let removed = window.remove(connection, &is_removable(self), before)?;
            let seqs: Vec<i64> = removed.iter().map(|(seq, ..)| *seq).collect();
            let is_committed = |status: Option<String>| status.as_deref() == Some("COMMITTED");
            let committed = removed
                .into_iter()
                .filter_map(|(seq, service, status)| is_committed(status).then_some((seq, service)))
                .collect();
            keep_past_transactions(connection, &committed)?;
            remove_rows_of(connection, &seqs)?;
            remove_events_of(connection, seqs.iter().copied())?;
            Ok(Removed { batches: seqs.len(), next: window.next(before, now) })
        })
    }

    /// Does all steps of [`remove_ended`](Self::remove_ended) while there is time. Returns where the next step
    /// continues, if there is one.
    pub fn remove_all_ended(
        &self,
        before: Timestamp,
        count: usize,
        has_time: impl Fn() -> bool,
    ) -> Result<Removed, StoreError> {
        let mut all = self.remove_ended(before, None, count)?;
        while all.next.is_some() && has_time() {
            let step = self.remove_ended(before, all.next, count)?;
            all = Removed { batches: all.batches + step.batches, next: step.next };
        }
        Ok(all)
    }

    /// What [`remove_all_ended`](Self::remove_all_ended) would remove.
    pub fn count_all_removable(
        &self,
        before: Timestamp,
        count: usize,
    ) -> Result<Removable, StoreError> {
        let mut all = self.count_removable(before, None, count)?;
        while all.next.is_some() {
            let step = self.count_removable(before, all.next, count)?;
            all = Removable {
                batches: all.batches + step.batches,
                bytes: all.bytes + step.bytes,
                oldest_end: all.oldest_end.into_iter().chain(step.oldest_end).min(),
                next: step.next,
            };
        }
        Ok(all)
    }

    /// What [`remove_ended`](Self::remove_ended) would remove in the same step.
    pub fn count_removable(
        &self,
        before: Timestamp,
        from: Option<RetentionCursor>,
        count: usize,
    ) -> Result<Removable, StoreError> {
        let now = self.now();
        let mut connection = self.pools.read()?;
        let window = RetentionWindow::load(&mut connection, from, count)?;
        let is_removable = is_removable(self);
        let sql = format!(
            "-- count_removable
             select b.ended_at, cast(length(p.serialized_batch) as bigint) as length
             from {{x}} join batches b on b.seq = x.seq
             join batch_payloads p on p.batch_seq = b.seq
             where {is_removable}"
        );
        let rows: Vec<(i64, i64)> = connection.load_tuples(&window.statement(sql, before))?;
        Ok(Removable {
            batches: rows.len(),
            bytes: rows.iter().map(|(_, length)| length.unsigned_abs()).sum(),
            oldest_end: rows.iter().map(|(end, _)| *end).min().map(Timestamp::from_micros),
            next: window.next(before, now),
        })
    }
}

/// The batches that one step examines.
struct RetentionWindow {
    examined: Vec<ExaminedBatch>,
    /// Whether there may be more batches.
    is_full: bool,
}

#[derive(Queryable, Clone, Copy)]
struct ExaminedBatch {
    seq: i64,
    created_at: i64,
    ended_at: Option<i64>,
}

impl RetentionWindow {
    fn load(
        connection: &mut Connection,
        from: Option<RetentionCursor>,
        count: usize,
    ) -> Result<Self, StoreError> {
        let count = count.max(1);
        let query = batches::table
            .filter(batches::seq.gt(from.unwrap_or_default().0))
            .order_by(batches::seq)
            .limit(limit(count))
            .select((batches::seq, batches::created_at, batches::ended_at));
        let examined: Vec<ExaminedBatch> = connection.load_query("retention_window", query)?;
        let is_full = examined.len() >= count;
        Ok(Self { examined, is_full })
    }

    /// A statement about those of the batches that ended before a time. It binds the time of [`HAS_NO_EVENT_SINCE`].
    fn statement(&self, sql: String, before: Timestamp) -> Statement<'static> {
        let before = before.as_micros();
        let ended = self.examined.iter().filter(|b| b.ended_at.is_some_and(|at| at < before));
        let statement =
            Statement::new(sql).rows(Rows::default().long("seq", ended.map(|batch| batch.seq)));
        if cfg!(feature = "events") { statement.long(before) } else { statement }
    }

    /// Removes those of the batches that ended before a time, and returns their numbers, services and statuses.
    /// Written as SQL, because Diesel does not support `skip locked` for both databases or in a delete.
    fn remove(
        &self,
        connection: &mut Connection,
        is_removable: &str,
        before: Timestamp,
    ) -> Result<Vec<(i64, String, Option<String>)>, StoreError> {
        let lock = connection.dialect().locking("for update of b skip locked");
        let sql = format!(
            "-- remove_ended
             delete from batches where seq in (
                 select b.seq from {{x}} join batches b on b.seq = x.seq
                 where {is_removable} order by b.seq {lock})
             returning seq, service_id, dlt_status"
        );
        connection.load_tuples(&self.statement(sql, before))
    }

    /// Where the next step continues. A batch from the future was stored while a clock was ahead, and says nothing
    /// about the batches after it.
    fn next(&self, before: Timestamp, now: Timestamp) -> Option<RetentionCursor> {
        let young = before.as_micros()..=now.as_micros();
        let all_are_young = self.examined.iter().all(|b| young.contains(&b.created_at));
        let last = self.examined.last().filter(|_| self.is_full && !all_are_young)?;
        Some(RetentionCursor(last.seq))
    }
}

/// The condition under which retention removes `batches b`.
fn is_removable(store: &Store) -> String {
    let of_hooks = store.scheduler.hooks().is_removable();
    let of_events = cfg!(feature = "events").then_some(HAS_NO_EVENT_SINCE);
    let conditions = [Some("b.ended_at is not null"), of_events, Some(IS_NOT_NEEDED), of_hooks];
    conditions.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

/// Removes the rows of other tables about removed batches, because they have no foreign key.
fn remove_rows_of(connection: &mut Connection, seqs: &[i64]) -> Result<(), StoreError> {
    for sql in [
        "-- remove_payloads
         delete from batch_payloads where batch_seq in (select x.seq from {x})",
        "-- remove_transactions
         delete from transactions where batch_seq in (select x.seq from {x})",
        "-- remove_declared_new
         delete from declared_new_batches where batch_seq in (select x.seq from {x})",
        "-- remove_client_batches
         delete from client_batches where batch_seq in (select x.seq from {x})",
    ] {
        connection.execute_rows(sql, Rows::default().long("seq", seqs.iter().copied()))?;
    }
    Ok(())
}
