use diesel::prelude::*;
use grid_batch_core::Timestamp;

use crate::sql::{Rows, Store, StoreError, rows::limit, schema::batches};

/// The result of one step of retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    /// How many batches were removed.
    pub batches: usize,
    /// Where the next step continues; `None` after the last step.
    pub next: Option<RetentionCursor>,
}

/// The last batch that retention examined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionCursor(i64);

pub(crate) fn remove_ended(
    store: &Store,
    before: Timestamp,
    from: Option<RetentionCursor>,
    count: usize,
) -> Result<Removed, StoreError> {
    let before = before.as_micros();
    let count = count.max(1);
    let lock = store.pools.dialect().locking("for update of b skip locked");
    let mut connection = store.pools.write()?;
    connection.write_transaction(|connection| {
        let window = batches::table
            .filter(batches::seq.gt(from.unwrap_or_default().0))
            .order_by(batches::seq)
            .limit(limit(count))
            .select((batches::seq, batches::ended_at));
        let examined: Vec<(i64, Option<i64>)> =
            connection.load_query("retention_window", window)?;
        let removable =
            examined.iter().filter(|(_, ended_at)| ended_at.is_some_and(|at| at < before));
        // By hand: Diesel has no `skip locked` for both databases, and no delete with it.
        let remove = store
            .statement(format!(
                "-- remove_ended
                 delete from batches where seq in (
                     select b.seq from {{x}} join batches b on b.seq = x.seq
                     where b.ended_at is not null and (
                         select count(*) from withdrawals w where w.batch_seq = b.seq) = 0
                     order by b.seq {lock})"
            ))
            .rows(Rows::default().long("seq", removable.map(|(seq, _)| *seq)));
        let batches = connection.execute(&remove)?;
        let last = examined.last().filter(|_| examined.len() >= count);
        Ok(Removed { batches, next: last.map(|(seq, _)| RetentionCursor(*seq)) })
    })
}
