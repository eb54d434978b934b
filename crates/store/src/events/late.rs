//! Groups that became visible after others with greater numbers.

use super::{
    cursor::{Position, Window},
    rows::{GROUP_COLUMNS, GroupRow},
    snapshot::Snapshot,
};
use crate::sql::{Connection, Dialect, Rows, Statement, StoreError};

/// The groups with numbers that were passed before the window, of transactions that had begun and not ended then,
/// in the order of their numbers.
pub(super) fn late_groups(
    connection: &mut Connection,
    position: &Position,
    window: &Window,
) -> Result<Vec<GroupRow>, StoreError> {
    let Some(seen) = position.seen.as_ref().filter(|seen| window.group <= seen.last_seq) else {
        return Ok(Vec::new());
    };
    let dialect = connection.dialect();
    if dialect.transaction_id().is_none() {
        return Ok(Vec::new());
    }
    let mut groups: Vec<GroupRow> = connection.load(&of_running(dialect, seen))?;
    groups.retain(|group| group.seq <= seen.last_seq);
    groups.extend(connection.load::<GroupRow>(&of_begun(dialect, seen))?);
    groups.sort_by_key(|group| group.seq);
    Ok(groups)
}

fn of_running(dialect: Dialect, seen: &Snapshot) -> Statement<'static> {
    Statement::new(
        dialect,
        format!(
            "-- event_groups_of_running
             select {GROUP_COLUMNS} from {{x}} join event_groups g on g.xid = x.xid"
        ),
    )
    .rows(Rows::default().long("xid", seen.running.iter().copied()))
}

/// Of the transactions that a snapshot does not see, those had begun that have the smallest ids. Each had a
/// connection, so there are no more than the server can have.
fn of_begun(dialect: Dialect, seen: &Snapshot) -> Statement<'static> {
    Statement::new(
        dialect,
        format!(
            "-- event_groups_of_begun
             select {GROUP_COLUMNS} from event_groups g
             where g.xid >= ? and g.seq <= ? and g.xid <= (
                 select max(begun.xid) from (
                     select distinct h.xid from event_groups h where h.xid >= ?
                     order by h.xid limit current_setting('max_connections')::bigint) as begun)"
        ),
    )
    .long(seen.first_invisible)
    .long(seen.last_seq)
    .long(seen.first_invisible)
}
