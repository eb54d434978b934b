use std::time::Duration;

use diesel::{dsl::min, prelude::*};
use grid_batch_core::batches::{BatchLabel, BatchState};
use grid_batch_core::queries::{BatchSelection, ListCursor, PageOrder};
use grid_batch_core::{ServiceId, Timestamp};

use crate::{
    operator::{ahead::load_head_time, list::oldest_waiting},
    sql::{
        Connection, StoreError,
        rows::limit,
        schema::{batches, lanes, transaction_receipts, waiting_batches, waiting_holds},
    },
};

/// The index that is used to find the batches.
pub(super) enum PageSource {
    /// Batches with a label.
    Label(BatchLabel),
    /// Held batches.
    Held,
    /// Batches in lanes, which are next or under way.
    Lanes,
    /// Invalid batches: each has a receipt at position 0.
    Invalid,
    /// Batches of a service that were stored from one time to before another.
    Service(ServiceId, Timestamp, Timestamp),
    /// All batches from one number to before another.
    All(i64, i64),
}

impl PageSource {
    /// `None`: there is nothing to find.
    pub(super) fn plan(
        connection: &mut Connection,
        selection: &BatchSelection,
    ) -> Result<Option<Self>, StoreError> {
        let states = &selection.states;
        Ok(if let Some(label) = &selection.label {
            Some(Self::Label(label.clone()))
        } else if selection.held == Some(true) {
            Some(Self::Held)
        } else if selection.is_of_open() && !states.contains(&BatchState::New) {
            Some(Self::Lanes)
        } else if states.iter().eq([&BatchState::Invalid]) {
            Some(Self::Invalid)
        } else if let Some(service_id) = &selection.service_id {
            Self::of_service(connection, service_id, selection)?
        } else {
            Self::of_all(connection, selection)?
        })
    }

    fn of_service(
        connection: &mut Connection,
        service_id: &ServiceId,
        selection: &BatchSelection,
    ) -> Result<Option<Self>, StoreError> {
        let mut from = selection.stored_from.unwrap_or(Timestamp::from_micros(i64::MIN));
        let before = selection.stored_before.unwrap_or(Timestamp::from_micros(i64::MAX));
        if selection.is_of_open() {
            let head = load_head_time(connection, service_id)?;
            let oldest = head.into_iter().chain(oldest_waiting(connection, service_id)?).min();
            let Some(oldest) = oldest else { return Ok(None) };
            from = from.max(oldest);
        }
        Ok(Some(Self::Service(service_id.clone(), from, before)))
    }

    fn of_all(
        connection: &mut Connection,
        selection: &BatchSelection,
    ) -> Result<Option<Self>, StoreError> {
        let (mut first, mut end) = (0, i64::MAX);
        if selection.is_of_open() {
            let Some(oldest) = oldest_open(connection)? else { return Ok(None) };
            first = oldest;
        }
        if let Some(from) = selection.stored_from {
            first = first.max(first_number(connection, from)?);
        }
        if let Some(before) = selection.stored_before {
            end = end_number(connection, before)?;
        }
        Ok(Some(Self::All(first, end)))
    }
}

/// The number of the oldest open batch, which is in a lane or waits without one.
fn oldest_open(connection: &mut Connection) -> Result<Option<i64>, StoreError> {
    let in_lanes = lanes::table.filter(lanes::busy).select(min(lanes::batch_seq));
    let in_lanes: Vec<Option<i64>> = connection.load_query("oldest_in_lanes", in_lanes)?;
    let waiting = waiting_batches::table
        .filter(waiting_batches::batch_seq.gt(0))
        .order_by(waiting_batches::batch_seq)
        .limit(1)
        .select(waiting_batches::batch_seq);
    let waiting: Vec<i64> = connection.load_query("oldest_without_lane", waiting)?;
    Ok(in_lanes.into_iter().flatten().chain(waiting).min())
}

/// The order in which batches are examined, and which are left out because no page can contain them.
pub(super) struct Walk {
    source: PageSource,
    order: PageOrder,
}

/// Continues a boxed query after a cursor, in the order of a column. The columns before it in the index
/// have one value.
macro_rules! continue_after {
    ($query:expr, $order:expr, $after:expr, $column:expr, ($($by:expr),+)) => {
        match $order {
            PageOrder::OldestFirst => {
                let after = $after.map_or(0, |after: ListCursor| after.number);
                $query.order_by(($($by.asc(),)+)).filter($column.gt(after))
            }
            PageOrder::NewestFirst => {
                let after = $after.map_or(i64::MAX, |after: ListCursor| after.number);
                $query.order_by(($($by.desc(),)+)).filter($column.lt(after))
            }
        }
    };
}

impl Walk {
    /// `None`: there is nothing to find.
    pub(super) fn plan(
        connection: &mut Connection,
        selection: &BatchSelection,
        order: PageOrder,
    ) -> Result<Option<Self>, StoreError> {
        let source = PageSource::plan(connection, selection)?;
        Ok(source.map(|source| Self { source, order }))
    }

    /// Up to `count` cursors after this one, and fewer only at the end.
    pub(super) fn next(
        &self,
        connection: &mut Connection,
        after: Option<ListCursor>,
        count: usize,
    ) -> Result<Vec<ListCursor>, StoreError> {
        match &self.source {
            PageSource::Label(label) => self.labelled(connection, label, after, count),
            PageSource::Held => self.held(connection, after, count),
            PageSource::Lanes => self.in_lanes(connection, false, after, count),
            PageSource::Invalid => self.invalid(connection, after, count),
            PageSource::Service(service_id, from, before) => {
                self.of_service(connection, service_id, *from, *before, after, count)
            }
            PageSource::All(first, end) => self.all(connection, *first, *end, after, count),
        }
    }

    fn labelled(
        &self,
        connection: &mut Connection,
        label: &BatchLabel,
        after: Option<ListCursor>,
        count: usize,
    ) -> Result<Vec<ListCursor>, StoreError> {
        let query = batches::table
            .filter(batches::label.eq(label.as_str()))
            .limit(limit(count))
            .select((batches::seq, batches::created_at))
            .into_boxed();
        let columns = (batches::label, batches::seq);
        let query = continue_after!(query, self.order, after, columns.1, (columns.0, columns.1));
        Ok(cursors(connection.load_query("labelled", query)?))
    }

    /// The hold of a batch that waits behind another one is in a separate table.
    fn held(
        &self,
        connection: &mut Connection,
        after: Option<ListCursor>,
        count: usize,
    ) -> Result<Vec<ListCursor>, StoreError> {
        let waiting = waiting_holds::table
            .inner_join(batches::table)
            .limit(limit(count))
            .select((waiting_holds::batch_seq, batches::created_at))
            .into_boxed();
        let number = waiting_holds::batch_seq;
        let waiting = continue_after!(waiting, self.order, after, number, (number));
        let mut held = cursors(connection.load_query("held_waiting", waiting)?);
        held.extend(self.in_lanes(connection, true, after, count)?);
        match self.order {
            PageOrder::OldestFirst => held.sort_unstable(),
            PageOrder::NewestFirst => held.sort_unstable_by(|a, b| b.cmp(a)),
        }
        held.dedup();
        held.truncate(count);
        Ok(held)
    }

    fn in_lanes(
        &self,
        connection: &mut Connection,
        held: bool,
        after: Option<ListCursor>,
        count: usize,
    ) -> Result<Vec<ListCursor>, StoreError> {
        let mut query = lanes::table
            .filter(lanes::busy)
            .limit(limit(count))
            .select((lanes::batch_seq.assume_not_null(), lanes::created_at.assume_not_null()))
            .into_boxed();
        query = if held {
            query.filter(lanes::held_at.is_not_null())
        } else {
            query.filter(lanes::submitted.or(lanes::dlt_status.is_not_null()))
        };
        let query = continue_after!(query, self.order, after, lanes::batch_seq, (lanes::batch_seq));
        Ok(cursors(connection.load_query("page_of_lanes", query)?))
    }

    fn invalid(
        &self,
        connection: &mut Connection,
        after: Option<ListCursor>,
        count: usize,
    ) -> Result<Vec<ListCursor>, StoreError> {
        let query = transaction_receipts::table
            .inner_join(batches::table)
            .filter(transaction_receipts::position.eq(0))
            .limit(limit(count))
            .select((transaction_receipts::batch_seq, batches::created_at))
            .into_boxed();
        let number = transaction_receipts::batch_seq;
        let query = continue_after!(query, self.order, after, number, (number));
        Ok(cursors(connection.load_query("page_of_invalid", query)?))
    }

    /// Within a service, the order of times is that of numbers.
    fn of_service(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        from: Timestamp,
        before: Timestamp,
        after: Option<ListCursor>,
        count: usize,
    ) -> Result<Vec<ListCursor>, StoreError> {
        let (mut from, mut before) = (from.as_micros(), before.as_micros());
        match (self.order, after.map(|after| after.stored_at.as_micros())) {
            (PageOrder::OldestFirst, Some(after)) => from = from.max(after.saturating_add(1)),
            (PageOrder::NewestFirst, Some(after)) => before = before.min(after),
            (_, None) => {}
        }
        let query = batches::table
            .filter(batches::service_id.eq(service_id.as_str()))
            .filter(batches::created_at.ge(from))
            .filter(batches::created_at.lt(before))
            .limit(limit(count))
            .select((batches::seq, batches::created_at))
            .into_boxed();
        let by = (batches::service_id, batches::created_at);
        let query = match self.order {
            PageOrder::OldestFirst => query.order_by(by),
            PageOrder::NewestFirst => query.order_by((by.0.desc(), by.1.desc())),
        };
        Ok(cursors(connection.load_query("page_of_service", query)?))
    }

    fn all(
        &self,
        connection: &mut Connection,
        first: i64,
        end: i64,
        after: Option<ListCursor>,
        count: usize,
    ) -> Result<Vec<ListCursor>, StoreError> {
        let query = batches::table
            .filter(batches::seq.ge(first))
            .filter(batches::seq.lt(end))
            .limit(limit(count))
            .select((batches::seq, batches::created_at))
            .into_boxed();
        let query = continue_after!(query, self.order, after, batches::seq, (batches::seq));
        Ok(cursors(connection.load_query("page_of_all", query)?))
    }
}

fn cursors(rows: Vec<(i64, i64)>) -> Vec<ListCursor> {
    let cursor =
        |(number, created_at)| ListCursor { number, stored_at: Timestamp::from_micros(created_at) };
    rows.into_iter().map(cursor).collect()
}

/// A batch gets its time before its number, and intake may wait for locks in between. Batches whose times are within
/// this margin may therefore be out of order in the order of numbers.
const MARGIN: Duration = Duration::from_secs(120);

/// The first number of batches that were stored at this time or later.
fn first_number(connection: &mut Connection, from: Timestamp) -> Result<i64, StoreError> {
    seek(connection, from.minus(MARGIN))
}

/// The number after the last batch that was stored before this time.
fn end_number(connection: &mut Connection, before: Timestamp) -> Result<i64, StoreError> {
    seek(connection, before.plus(MARGIN))
}

/// Finds by binary search where the times reach this one. Each step reads one row.
fn seek(connection: &mut Connection, time: Timestamp) -> Result<i64, StoreError> {
    let Some((mut low, _)) = first_from(connection, 0)? else { return Ok(0) };
    let mut end = last_number(connection)?.saturating_add(1);
    while low < end {
        let middle = low + (end - low) / 2;
        match first_from(connection, middle)? {
            Some((seq, created_at)) if created_at < time.as_micros() => low = seq + 1,
            _ => end = middle,
        }
    }
    Ok(low)
}

fn first_from(connection: &mut Connection, seq: i64) -> Result<Option<(i64, i64)>, StoreError> {
    let query = batches::table
        .filter(batches::seq.ge(seq))
        .order_by(batches::seq)
        .limit(1)
        .select((batches::seq, batches::created_at));
    Ok(connection.load_query("first_from", query)?.into_iter().next())
}

fn last_number(connection: &mut Connection) -> Result<i64, StoreError> {
    let query = batches::table
        .filter(batches::seq.gt(0))
        .order_by(batches::seq.desc())
        .limit(1)
        .select(batches::seq);
    let found: Vec<i64> = connection.load_query("last_number", query)?;
    Ok(found.first().copied().unwrap_or(0))
}
