use diesel::QueryableByName;
use grid_batch_core::events::{
    BatchEvent, EventCursor, EventFilter, EventListener, EventPage, EventPosition, EventReadError,
    EventStore,
};
use grid_batch_core::{BatchResult, ItemId, ServiceId};

use super::{
    cursor::{Position, RemovedUpTo},
    reader::Reader,
    rows::{EVENT_COLUMNS, EventRow},
    snapshot::Snapshot,
};
use crate::sql::{Connection, Statement, Store, StoreError, result_row};

impl EventStore for Store {
    fn events(
        &self,
        from: &EventPosition,
        filter: &EventFilter,
        limit: usize,
    ) -> BatchResult<Result<EventPage, EventReadError>> {
        let mut connection = self.pools.read()?;
        let before = FeedRow::read(&mut connection)?;
        let position = match from {
            EventPosition::Oldest => Position::oldest(before.generation),
            EventPosition::Latest => {
                let next = latest_of(&mut connection, &before)?;
                return Ok(Ok(EventPage { events: Vec::new(), next, more: false }));
            }
            EventPosition::After(cursor) => match Position::decode(cursor) {
                Some(position) => position,
                None => return Ok(Err(EventReadError::NotACursor)),
            },
        };
        let first = position.clone();
        let page = Reader::new(self, &mut connection, filter, limit.max(1)).read(position)?;
        // Events that were removed meanwhile may be missing in the page.
        let after = FeedRow::read(&mut connection)?;
        let is_kept = first.generation == after.generation && first.is_kept(after.removed());
        match page {
            Some(page) if is_kept => Ok(Ok(page)),
            _ => Ok(Err(EventReadError::Gone {
                oldest: Position::oldest(after.generation).encode()?,
            })),
        }
    }

    fn history(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<Vec<BatchEvent>>> {
        let mut connection = self.pools.read()?;
        let Some(seq) = find_seq(&mut connection, service_id, batch_id)? else { return Ok(None) };
        let statement = Statement::new(format!(
            "-- batch_history
             select {EVENT_COLUMNS},
                 (select g.instance from event_groups g where g.seq = e.group_seq) as instance
             from batch_events e
             join batches b on b.seq = e.batch_seq
             where e.batch_seq = ?
             order by e.batch_seq, e.group_seq, e.position"
        ))
        .long(seq);
        let rows: Vec<HistoryRow> = connection.load(&statement)?;
        let read = |row: HistoryRow| row.event.into_event(row.instance, None);
        Ok(Some(rows.into_iter().map(read).collect::<Result<_, _>>()?))
    }

    fn on_events(&self, listener: EventListener) {
        self.scheduler.events().listen(listener);
    }
}

/// The position after the latest event.
pub(crate) fn latest(store: &Store) -> Result<EventCursor, StoreError> {
    let mut connection = store.pools.read()?;
    let feed = FeedRow::read(&mut connection)?;
    latest_of(&mut connection, &feed)
}

fn latest_of(connection: &mut Connection, feed: &FeedRow) -> Result<EventCursor, StoreError> {
    let seen = Some(Snapshot::take(connection)?);
    Position { generation: feed.generation, seen, window: None }.encode()
}

fn find_seq(
    connection: &mut Connection,
    service_id: &ServiceId,
    batch_id: &ItemId,
) -> Result<Option<i64>, StoreError> {
    let statement = Statement::new(
        "-- find_batch_seq
         select b.seq from batches b where b.batch_id = ? and b.service_id = ?",
    )
    .bytes(batch_id.as_bytes())
    .text(service_id.as_str());
    Ok(connection.load_column(&statement)?.into_iter().next())
}

result_row! {
    /// How far back the feed goes.
    struct FeedRow {
        /// When the database last went back or moved.
        generation: i64,
        removed_seq: i64,
        removed_xid: i64,
    }
}

impl FeedRow {
    fn read(connection: &mut Connection) -> Result<Self, StoreError> {
        let statement = Statement::new(
            "-- read_event_feed
             select f.generation, f.removed_seq, f.removed_xid from event_feed f where f.id = 1",
        );
        let rows: Vec<Self> = connection.load(&statement)?;
        rows.into_iter().next().ok_or_else(|| StoreError::corrupt("event_feed has no row"))
    }

    fn removed(&self) -> RemovedUpTo {
        RemovedUpTo { seq: self.removed_seq, xid: self.removed_xid }
    }
}

result_row! {
    struct HistoryRow {
        instance: Option<String>,
        #[diesel(embed)]
        event: EventRow,
    }
}
