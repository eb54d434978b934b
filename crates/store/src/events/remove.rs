//! Retention removes events together with their batches, and groups at the same age.

use grid_batch_core::Timestamp;

use crate::sql::{Connection, Rows, Statement, StoreError, rows::limit};

/// Removes the events of batches that are removed.
pub(crate) fn remove_events_of(
    connection: &mut Connection,
    batch_seqs: impl Iterator<Item = i64>,
) -> Result<(), StoreError> {
    if !cfg!(feature = "events") {
        return Ok(());
    }
    connection.execute_rows(
        "-- remove_batch_events
         delete from batch_events where batch_seq in (select x.seq from {x})",
        Rows::default().long("seq", batch_seqs),
    )
}

/// Locks the row of the feed. Returns the last group that was removed.
pub(crate) fn lock_feed(connection: &mut Connection) -> Result<Option<i64>, StoreError> {
    let lock = connection.dialect().locking("for update of f");
    let lock_feed = Statement::new(format!(
        "-- lock_event_feed\n select f.removed_seq as seq from event_feed f where f.id = 1 {lock}"
    ));
    Ok(connection.load_column(&lock_feed)?.into_iter().next())
}

/// Removes up to `count` of the oldest groups that were written before a time, and records up to where. The last group
/// is kept, because SQLite would otherwise assign its number to the next one.
pub(crate) fn remove_groups(
    connection: &mut Connection,
    before: Timestamp,
    count: usize,
) -> Result<usize, StoreError> {
    if !cfg!(feature = "events") {
        return Ok(0);
    }
    let removed = lock_feed(connection)?;
    let oldest = Statement::new(
        "-- oldest_event_groups
         select g.seq, g.at, coalesce(g.xid, 0) as xid from event_groups g where g.seq > ?
         order by g.seq limit ?",
    )
    .long(removed.unwrap_or(0))
    .long(limit(count.saturating_add(1)));
    let mut oldest: Vec<(i64, i64, i64)> = connection.load_tuples(&oldest)?;
    oldest.pop();
    let old: Vec<_> =
        oldest.into_iter().take_while(|(_, at, _)| *at < before.as_micros()).collect();
    let Some((last, ..)) = old.last() else { return Ok(0) };
    connection.execute_rows(
        "-- remember_removed_events
         update event_feed as f
         set removed_seq = x.seq,
             removed_xid = case when f.removed_xid > x.xid then f.removed_xid else x.xid end
         from {x} where f.id = 1",
        Rows::default()
            .long("seq", [*last])
            .long("xid", [old.iter().map(|(.., xid)| *xid).max().unwrap_or_default()]),
    )?;
    let remove = Statement::new(
        "-- remove_event_groups
         delete from event_groups where seq in (select x.seq from {x})",
    )
    .rows(Rows::default().long("seq", old.iter().map(|(seq, ..)| *seq)));
    connection.execute(&remove)
}
