use diesel::{QueryableByName, sql_types::BigInt};
use grid_batch_core::{EventCursor, EventFilter, EventPage, EventPosition, EventReadError};

use super::{
    cursor::{Position, RemovedUpTo},
    reader::Reader,
    snapshot::Snapshot,
};
use crate::sql::{Connection, Statement, Store, StoreError};

/// Reads up to `count` events from a position.
pub(crate) fn read(
    store: &Store,
    from: &EventPosition,
    filter: &EventFilter,
    count: usize,
) -> Result<Result<EventPage, EventReadError>, StoreError> {
    let mut connection = store.pools.read()?;
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
    let page = Reader::new(store, &mut connection, filter, count.max(1)).read(position)?;
    // What was removed meanwhile may be missing in the page.
    let after = FeedRow::read(&mut connection)?;
    let is_kept = first.generation == after.generation && first.is_kept(after.removed());
    match page {
        Some(page) if is_kept => Ok(Ok(page)),
        _ => Ok(Err(EventReadError::Gone { oldest: Position::oldest(after.generation).encode()? })),
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

/// How far back the feed goes.
#[derive(QueryableByName)]
struct FeedRow {
    /// When the database went back or moved last.
    #[diesel(sql_type = BigInt)]
    generation: i64,
    #[diesel(sql_type = BigInt)]
    removed_seq: i64,
    #[diesel(sql_type = BigInt)]
    removed_xid: i64,
}

impl FeedRow {
    fn read(connection: &mut Connection) -> Result<Self, StoreError> {
        let statement = Statement::new(
            connection.dialect(),
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
