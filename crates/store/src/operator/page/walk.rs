use diesel::prelude::*;
use grid_batch_core::{BatchLabel, BatchSelection, ListCursor, PageOrder, ServiceId, Timestamp};

use super::source::Source;
use crate::sql::{
    Connection, StoreError,
    rows::limit,
    schema::{batches, lanes, transaction_receipts, waiting_holds},
};

/// In which order batches are examined, and which are left out because no page can have them.
pub(super) struct Walk {
    source: Source,
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
        let source = Source::plan(connection, selection)?;
        Ok(source.map(|source| Self { source, order }))
    }

    /// The next cursors after this one: up to `count`, and fewer only at the end.
    pub(super) fn next(
        &self,
        connection: &mut Connection,
        after: Option<ListCursor>,
        count: usize,
    ) -> Result<Vec<ListCursor>, StoreError> {
        match &self.source {
            Source::Label(label) => self.labelled(connection, label, after, count),
            Source::Held => self.held(connection, after, count),
            Source::Lanes => self.in_lanes(connection, false, after, count),
            Source::Invalid => self.invalid(connection, after, count),
            Source::Service(service_id, from, before) => {
                self.of_service(connection, service_id, *from, *before, after, count)
            }
            Source::All(first, end) => self.all(connection, *first, *end, after, count),
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

    /// A batch that waits behind another one has its hold in a table of its own.
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
