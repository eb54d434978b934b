//! The commits that were visible to a reader at one moment.
//!
//! On PostgreSQL, this is the snapshot of a statement. A number of each commit, such as `seq` or the transaction id, is
//! not sufficient, because a commit can become visible after one with a greater number.

use grid_batch_core::Timestamp;

use super::rows::GroupRow;
use crate::sql::{Connection, Rows, Statement, StoreError};

/// The commits that were visible at one moment. The default is the moment before the first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Snapshot {
    /// All transactions before this one had ended.
    pub(super) first_running: i64,
    /// This transaction and those after it had not ended. A few of them may have begun.
    pub(super) first_invisible: i64,
    /// The transactions in between that had not ended.
    pub(super) running: Vec<i64>,
    /// Groups up to this number can only be written by transactions that had begun.
    pub(super) last_seq: i64,
    /// The greatest visible number. After a crash, PostgreSQL may assign the id of an unfinished transaction to another
    /// one, but never the number of a group twice.
    pub(super) last_visible: i64,
}

impl Snapshot {
    /// Takes a snapshot now. The last number is read first, so that transactions with smaller ones have begun.
    pub(super) fn take(connection: &mut Connection) -> Result<Self, StoreError> {
        let last = "-- last_event_group
             select coalesce(max(g.seq), 0) as number from event_groups g";
        let last: Vec<i64> = connection.load_column(&Statement::new(last))?;
        let last_seq = last.first().copied().unwrap_or(0);
        let Some(query) = connection.dialect().snapshot_query() else {
            return Ok(Self { last_seq, last_visible: last_seq, ..Self::default() });
        };
        let rows: Vec<(String, i64)> = connection.load_tuples(&Statement::new(query))?;
        let (text, last_visible) =
            rows.first().map_or(("", 0), |(text, last)| (text.as_str(), *last));
        let snapshot = Self::parse(text);
        let snapshot = snapshot.ok_or_else(|| StoreError::corrupt(format!("a snapshot {text}")))?;
        Ok(Self { last_seq, last_visible, ..snapshot })
    }

    /// Parses PostgreSQL's format: `10:20:10,14,15`.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (first, later, running) = (parts.next()?, parts.next()?, parts.next()?);
        let running = running.split(',').filter(|part| !part.is_empty());
        Some(Self {
            first_running: first.parse().ok()?,
            first_invisible: later.parse().ok()?,
            running: running.map(str::parse).collect::<Result<_, _>>().ok()?,
            ..Self::default()
        })
    }

    /// Whether a group was visible.
    pub(super) fn sees(&self, group: &GroupRow) -> bool {
        match group.xid {
            None => group.seq <= self.last_seq,
            Some(xid) => {
                let had_ended = xid < self.first_running
                    || (xid < self.first_invisible && !self.running.contains(&xid));
                had_ended && group.seq <= self.last_visible
            }
        }
    }
}

/// Begins another generation of positions after the database went back or moved to another server. A copy contains
/// transaction ids of the other server, which may not have been reached here yet, so its groups are made visible to
/// all.
pub(crate) fn begin_generation(
    connection: &mut Connection,
    now: Timestamp,
) -> Result<(), StoreError> {
    if !cfg!(feature = "events") {
        return Ok(());
    }
    connection.execute_rows(
        "-- begin_event_generation
         update event_feed as f
         set removed_xid = 0, generation = case
             when f.generation >= x.now then f.generation + 1 else x.now end
         from {x} where f.id = 1",
        Rows::default().long("now", [now.as_micros()]),
    )?;
    let Some(first_invisible) = connection.dialect().first_invisible_transaction() else {
        return Ok(());
    };
    let show = format!(
        "-- show_event_groups
         update event_groups set xid = null where xid >= {first_invisible}"
    );
    connection.execute(&Statement::new(show)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(xid: i64) -> GroupRow {
        GroupRow { seq: 5, xid: Some(xid), instance: None, batch_seqs: Vec::new() }
    }

    #[test]
    fn snapshot_sees_what_had_ended() {
        let snapshot = Snapshot { last_visible: 5, ..Snapshot::parse("10:20:10,14").unwrap() };
        let seen: Vec<i64> = (8..22).filter(|xid| snapshot.sees(&group(*xid))).collect();
        assert_eq!(seen, [8, 9, 11, 12, 13, 15, 16, 17, 18, 19]);
        let later = GroupRow { seq: 6, ..group(8) };
        assert!(!snapshot.sees(&later), "the id of its transaction is used again");
        assert!(Snapshot::parse("7:7:").unwrap().running.is_empty());
        assert_eq!(Snapshot::parse("7"), None);
    }

    #[test]
    fn group_without_a_transaction_is_seen_by_its_number() {
        let group = GroupRow { xid: None, ..group(0) };
        assert!(Snapshot { last_seq: 5, ..Snapshot::default() }.sees(&group));
        assert!(!Snapshot { last_seq: 4, ..Snapshot::default() }.sees(&group));
    }
}
