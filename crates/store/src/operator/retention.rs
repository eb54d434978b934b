use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable},
};
use grid_batch_core::Timestamp;

use crate::sql::{Rows, Store, StoreError, rows::limit};

/// What one step of retention did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    /// How many batches were removed.
    pub batches: usize,
    /// Where the next step goes on; `None`: all batches were looked at.
    pub next: Option<RetentionCursor>,
}

/// How far retention has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionCursor(i64);

impl Store {
    /// Removes batches that ended before `before`, with their bytes and all that is known of them.
    ///
    /// One step looks at no more than `limit` batches, the oldest first, and is one commit. Open
    /// batches are never touched, and neither is the one that tried a withdrawal last. A batch that is
    /// removed is forgotten: handed in again, it counts as new, so nobody should still repeat a
    /// request that is older than `before`.
    pub fn remove_ended(
        &self,
        before: Timestamp,
        from: Option<RetentionCursor>,
        count: usize,
    ) -> Result<Removed, StoreError> {
        let before = before.as_micros();
        let count = count.max(1);
        let lock = self.pools.dialect().locking("for update of b skip locked");
        let mut connection = self.pools.write()?;
        connection.transaction(|connection| {
            let look = self
                .statement(
                    "-- retention_window
                     select seq, ended_at from batches where seq > ?
                     order by seq limit ?",
                )
                .long(from.unwrap_or_default().0)
                .long(limit(count));
            let window: Vec<WindowRow> = connection.load(&look)?;
            let removable = window.iter().filter(|row| row.ended_at.is_some_and(|at| at < before));
            let remove = self
                .statement(format!(
                    "-- remove_ended
                     delete from batches where seq in (
                         select b.seq from {{x}} join batches b on b.seq = x.seq
                         where b.ended_at is not null and (
                             select count(*) from withdrawals w where w.batch_seq = b.seq) = 0
                         order by b.seq {lock})"
                ))
                .rows(Rows::default().long("seq", removable.map(|row| row.seq)));
            let batches = connection.execute(&remove)?;
            let more = window.last().filter(|_| window.len() >= count);
            let next = more.map(|row| RetentionCursor(row.seq));
            Ok(Removed { batches, next })
        })
    }
}

#[derive(QueryableByName)]
struct WindowRow {
    #[diesel(sql_type = BigInt)]
    seq: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    ended_at: Option<i64>,
}
