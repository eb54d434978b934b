//! Pages of batches in the order of their numbers, which is the order in which they were stored.
//!
//! Each page walks along one index ([`Walk`]) and examines a limited number of batches, whatever it selects.

mod fill;
mod walk;

use std::collections::HashMap;

use diesel::prelude::*;
use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::{BatchPage, BatchSelection, ListCursor, ListedBatch, PageOrder};

pub(crate) use self::fill::fill_page;
use self::walk::Walk;
use super::holds::{waiting_hold, with_waiting_hold};
use crate::sql::{
    Connection, Store, StoreError,
    query::{BatchRecord, batches_with_lane},
    rows::label,
    schema::{batches, transaction_receipts, waiting_holds},
};

pub(super) fn batch_page(
    store: &Store,
    selection: &BatchSelection,
    order: PageOrder,
    after: Option<ListCursor>,
    count: usize,
) -> Result<BatchPage, StoreError> {
    store.pools.read()?.snapshot(|connection| {
        let Some(walk) = Walk::plan(connection, selection, order)? else {
            return Ok(BatchPage::default());
        };
        let next = |connection: &mut Connection, after, step| walk.next(connection, after, step);
        let select = |connection: &mut Connection, cursors: &[ListCursor]| {
            let mut listed = load_listed(store, connection, cursors)?;
            listed.retain(|(_, listed)| selection.selects(listed));
            Ok(listed)
        };
        let (batches, next) = fill_page(connection, after, count, next, select)?;
        Ok(BatchPage { batches, next })
    })
}

/// The batches at these cursors, in their order, without those of services whose names cannot be read.
fn load_listed(
    store: &Store,
    connection: &mut Connection,
    cursors: &[ListCursor],
) -> Result<Vec<(ListCursor, ListedBatch)>, StoreError> {
    if cursors.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = load_rows(store, connection, cursors.iter().map(|cursor| cursor.number))?;
    let is_invalid = |listed: &ListedBatch| listed.batch.progress.state == BatchState::Invalid;
    let invalid: Vec<i64> =
        found.iter().filter(|(_, listed)| is_invalid(listed)).map(|(seq, _)| *seq).collect();
    for (seq, message) in load_first_receipts(connection, invalid)? {
        if let Some(listed) = found.get_mut(&seq) {
            listed.error = Some(message);
        }
    }
    let with_batch = |cursor: &ListCursor| Some((*cursor, found.remove(&cursor.number)?));
    Ok(cursors.iter().filter_map(with_batch).collect())
}

type PageRow = (BatchRecord, Option<String>, Option<i64>, Option<String>);

fn load_rows(
    store: &Store,
    connection: &mut Connection,
    seqs: impl Iterator<Item = i64>,
) -> Result<HashMap<i64, ListedBatch>, StoreError> {
    let hold = || waiting_holds::table.filter(waiting_holds::batch_seq.eq(batches::seq));
    let query = batches_with_lane().filter(batches::seq.eq_any(Vec::from_iter(seqs))).select((
        BatchRecord::as_select(),
        batches::label,
        hold().select(waiting_holds::held_at).single_value(),
        hold().select(waiting_holds::held_reason).single_value(),
    ));
    let rows: Vec<PageRow> = connection.load_query("batches_of_page", query)?;
    rows.into_iter()
        .filter(|(record, ..)| store.unreadable.read(record.service_name()).is_some())
        .map(|(record, text, held_at, held_reason)| {
            let seq = record.seq();
            let hold = held_at.zip(held_reason).map(|(at, reason)| waiting_hold(at, reason));
            let batch = with_waiting_hold(record, hold)?;
            let error = batch.last_error.clone();
            Ok((seq, ListedBatch { batch, label: label(text)?, error }))
        })
        .collect()
}

/// The first reason why each of these batches is invalid.
fn load_first_receipts(
    connection: &mut Connection,
    seqs: Vec<i64>,
) -> Result<Vec<(i64, String)>, StoreError> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    let query = transaction_receipts::table
        .filter(transaction_receipts::batch_seq.eq_any(seqs))
        .filter(transaction_receipts::position.eq(0))
        .select((transaction_receipts::batch_seq, transaction_receipts::error_message));
    connection.load_query("first_receipts", query)
}
