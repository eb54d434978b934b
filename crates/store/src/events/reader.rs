//! Reads pages of the feed, also from groups that became visible after others with greater numbers.

use std::collections::HashMap;

use diesel::QueryableByName;
use grid_batch_core::batches::BatchState;
use grid_batch_core::events::{EventFilter, EventKind, EventPage, PositionedEvent};

use super::{
    cursor::{Position, Window},
    rows::{EVENT_COLUMNS, EventRow, GROUP_COLUMNS, GroupRow, code, decode_seqs},
    snapshot::Snapshot,
};
use crate::sql::{Connection, Rows, Statement, Store, StoreError, result_row, rows::limit};

/// How many groups are read at once.
const GROUPS: usize = 100;

/// How many events are read at once.
const EVENTS: usize = 1_000;

/// Limit on the number of groups and events that are examined for a page, whether or not the filter selects them.
const MOST_EXAMINED: usize = 20_000;

/// Reads one page.
pub(super) struct Reader<'a, 'c> {
    store: &'a Store,
    connection: &'a mut Connection<'c>,
    filter: &'a EventFilter,
    count: usize,
    examined: usize,
    found: Vec<PositionedEvent>,
}

/// An event that is to be read.
struct NamedEvent {
    group: i64,
    position: i32,
    batch_seq: i64,
    is_last_of_group: bool,
}

impl<'a, 'c> Reader<'a, 'c> {
    pub(super) fn new(
        store: &'a Store,
        connection: &'a mut Connection<'c>,
        filter: &'a EventFilter,
        count: usize,
    ) -> Self {
        Self { store, connection, filter, count, examined: 0, found: Vec::new() }
    }

    /// Reads up to the end of a window. `None`: events were removed.
    pub(super) fn read(mut self, mut position: Position) -> Result<Option<EventPage>, StoreError> {
        let mut window = match position.window.take() {
            Some(window) => window,
            None => Window { until: Snapshot::take(self.connection)?, group: 0, events: 0 },
        };
        let mut late = late_groups(self.connection, &position, &window)?;
        late.retain(|group| is_next(group, &window) && !position.has_seen(group));
        if !self.read_groups(&position, &mut window, late)? {
            return Ok(None);
        }
        while !self.is_full() {
            let next = self.next_groups(&position, &window)?;
            let (last, is_last) = (next.last().map(|group| group.seq), next.len() < GROUPS);
            self.examined += next.len();
            let unread = |group: &GroupRow| is_next(group, &window) && !position.has_seen(group);
            let groups = next.into_iter().filter(unread).collect();
            if !self.read_groups(&position, &mut window, groups)? {
                return Ok(None);
            }
            if self.found.len() >= self.count {
                break;
            }
            if let Some(last) = last {
                (window.group, window.events) = (last, 0);
            }
            if is_last {
                position.seen = Some(window.until);
                let next = position.encode()?;
                return Ok(Some(EventPage { events: self.found, next, more: false }));
            }
        }
        position.window = Some(window);
        let next = position.encode()?;
        Ok(Some(EventPage { events: self.found, next, more: true }))
    }

    fn is_full(&self) -> bool {
        self.found.len() >= self.count || self.examined >= MOST_EXAMINED
    }

    /// The groups after those that were read, up to the last one of the window. The window does not see all of them.
    fn next_groups(
        &mut self,
        position: &Position,
        window: &Window,
    ) -> Result<Vec<GroupRow>, StoreError> {
        let is_read_in_part = window.events > 0 && window.group > position.last_seen();
        let read = window.group.max(position.last_seen());
        let statement = Statement::new(format!(
            "-- next_event_groups
             select {GROUP_COLUMNS} from event_groups g where g.seq > ? and g.seq <= ?
             order by g.seq limit ?"
        ))
        .long(if is_read_in_part { read - 1 } else { read })
        .long(window.until.last_visible)
        .long(limit(GROUPS));
        self.connection.load(&statement)
    }

    /// Reads the events of groups until the page is full, and moves the window past them. `false`: some were removed.
    fn read_groups(
        &mut self,
        position: &Position,
        window: &mut Window,
        groups: Vec<GroupRow>,
    ) -> Result<bool, StoreError> {
        let named = name_events(window, &groups)?;
        let instances: HashMap<i64, Option<String>> =
            groups.into_iter().map(|group| (group.seq, group.instance)).collect();
        // The first events may fill the page. If they do not, the filter selects few.
        let (mut rest, mut step) = (&named[..], self.count.saturating_mul(2).min(EVENTS));
        let with_ends = self.filter.kinds.contains(&EventKind::Ended);
        while !rest.is_empty() && self.found.len() < self.count {
            let (part, after) = rest.split_at(step.min(rest.len()));
            (rest, step) = (after, EVENTS);
            let mut rows = load_events(self.connection, part, with_ends)?;
            let ids: Vec<&[u8]> = rows.values().map(|row| row.event.batch_id.as_slice()).collect();
            let hooks = self.store.scheduler.hooks();
            let withdrawals = hooks.event_details(self.connection, &ids)?;
            self.examined += part.len();
            for named in part {
                if self.found.len() >= self.count {
                    break;
                }
                window.read(named);
                let Some(FeedRow { event: row, is_end }) =
                    rows.remove(&(named.group, named.position))
                else {
                    if position.seen.is_none() {
                        continue;
                    }
                    return Ok(false);
                };
                if self.store.unreadable.read(&row.service_id).is_none() {
                    continue;
                }
                let instance = instances.get(&named.group).cloned().flatten();
                let withdrawal = withdrawals.get(&row.batch_id).cloned();
                let mut event = row.into_event(instance, withdrawal)?;
                if is_end {
                    event.kind = EventKind::Ended;
                }
                if self.filter.selects(&event) {
                    let cursor = position.in_window(window).encode()?;
                    self.found.push(PositionedEvent { event, cursor });
                }
            }
        }
        Ok(true)
    }
}

impl Window {
    fn read(&mut self, event: &NamedEvent) {
        let read = usize::try_from(event.position).unwrap_or_default().saturating_add(1);
        self.group = event.group;
        self.events = if event.is_last_of_group { 0 } else { read };
    }
}

/// Whether a group is visible in a window and not read yet.
fn is_next(group: &GroupRow, window: &Window) -> bool {
    let is_unread = group.seq > window.group || (group.seq == window.group && window.events > 0);
    is_unread && window.until.sees(group)
}

/// The events of groups that are to be read.
fn name_events(window: &Window, groups: &[GroupRow]) -> Result<Vec<NamedEvent>, StoreError> {
    let mut named = Vec::new();
    for group in groups {
        let skip = if window.group == group.seq { window.events } else { 0 };
        let seqs = decode_seqs(&group.batch_seqs)?;
        let count = seqs.len();
        let events = (0..).zip(seqs).enumerate().skip(skip);
        named.extend(events.map(|(index, (position, batch_seq))| NamedEvent {
            group: group.seq,
            position,
            batch_seq,
            is_last_of_group: index + 1 == count,
        }));
    }
    Ok(named)
}

result_row! {
    struct FeedRow {
        /// The batch ended with the event, and the reader asked for ends.
        is_end: bool,
        #[diesel(embed)]
        event: EventRow,
    }
}

/// The condition that a batch ended with the event: it is the first one with a final state.
fn is_end() -> String {
    let ended = BatchState::ALL.into_iter().filter(|state| state.is_terminal());
    let ended: Vec<_> = ended.map(|state| code(&BatchState::ALL, state).to_string()).collect();
    let ended = ended.join(", ");
    format!(
        "(e.state in ({ended}) and not exists (
             select 1 from batch_events p
             where p.batch_seq = e.batch_seq and p.state in ({ended})
                 and (p.group_seq, p.position) < (e.group_seq, e.position)))"
    )
}

fn load_events(
    connection: &mut Connection,
    named: &[NamedEvent],
    with_ends: bool,
) -> Result<HashMap<(i64, i32), FeedRow>, StoreError> {
    let is_end = if with_ends { is_end() } else { "false".to_owned() };
    let rows: Vec<FeedRow> = connection.load_rows(
        format!(
            "-- load_events
             select {EVENT_COLUMNS}, {is_end} as is_end from {{x}}
             join batch_events e on e.batch_seq = x.batch_seq and e.group_seq = x.group_seq
                 and e.position = x.position
             join batches b on b.seq = e.batch_seq"
        ),
        Rows::default()
            .long("batch_seq", named.iter().map(|event| event.batch_seq))
            .long("group_seq", named.iter().map(|event| event.group))
            .int("position", named.iter().map(|event| event.position))
            .in_chunks(),
    )?;
    Ok(rows.into_iter().map(|row| ((row.event.group_seq, row.event.position), row)).collect())
}

/// Late groups, in the order of their numbers. Their numbers were passed before the window, but their transactions had
/// begun and not ended then.
fn late_groups(
    connection: &mut Connection,
    position: &Position,
    window: &Window,
) -> Result<Vec<GroupRow>, StoreError> {
    let Some(seen) = position.seen.as_ref().filter(|seen| window.group <= seen.last_seq) else {
        return Ok(Vec::new());
    };
    if connection.dialect().transaction_id().is_none() {
        return Ok(Vec::new());
    }
    let mut groups: Vec<GroupRow> = connection.load_rows(
        format!(
            "-- event_groups_of_running
             select {GROUP_COLUMNS} from {{x}} join event_groups g on g.xid = x.xid"
        ),
        Rows::default().long("xid", seen.running.iter().copied()),
    )?;
    groups.retain(|group| group.seq <= seen.last_seq);
    // The transactions that a snapshot does not see but that had begun are the ones with the smallest ids. Each had a
    // connection, so there are at most as many as the server allows.
    let begun = Statement::new(format!(
        "-- event_groups_of_begun
         select {GROUP_COLUMNS} from event_groups g
         where g.xid >= ? and g.seq <= ? and g.xid <= (
             select max(begun.xid) from (
                 select distinct h.xid from event_groups h where h.xid >= ?
                 order by h.xid limit current_setting('max_connections')::bigint) as begun)"
    ))
    .long(seen.first_invisible)
    .long(seen.last_seq)
    .long(seen.first_invisible);
    groups.extend(connection.load::<GroupRow>(&begun)?);
    groups.sort_by_key(|group| group.seq);
    Ok(groups)
}
