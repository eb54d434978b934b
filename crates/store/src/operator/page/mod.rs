//! Pages of batches, in the order of their numbers, in which they were stored.
//!
//! Each page walks along one index ([`Walk`]) and looks at a limited number of batches, whatever it selects.

mod rows;
mod seek;
mod source;
mod walk;

use grid_batch_core::{BatchPage, BatchSelection, ListCursor, PageOrder};

use self::{rows::load_listed, walk::Walk};
use crate::sql::{Store, StoreError};

/// The most batches that are examined for a page.
const MOST_EXAMINED: usize = 5_000;
/// How many are read at once, after the first that may fill the page.
const STEP: usize = 500;

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
        let (mut page, mut last) = (BatchPage::default(), None);
        let (mut after, mut examined, mut step) = (after, 0, count.saturating_add(1));
        loop {
            let cursors = walk.next(connection, after, step)?;
            for (cursor, listed) in load_listed(store, connection, &cursors)? {
                if !selection.selects(&listed) {
                    continue;
                }
                if page.batches.len() >= count {
                    return Ok(BatchPage { next: last, ..page });
                }
                last = Some(cursor);
                page.batches.push(listed);
            }
            if cursors.len() < step {
                return Ok(page);
            }
            examined += cursors.len();
            after = cursors.last().copied().or(after);
            if examined >= MOST_EXAMINED {
                return Ok(BatchPage { next: after, ..page });
            }
            step = STEP;
        }
    })
}
