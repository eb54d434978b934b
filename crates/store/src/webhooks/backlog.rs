//! How many events wait for a webhook.

use grid_batch_core::BatchResult;
use grid_batch_core::events::{EventPosition, EventReadError, EventStore};
use grid_batch_core::webhooks::{Backlog, WebhookId};

use super::rows::{DUE_COLUMNS, DueRow};
use crate::sql::{Statement, Store, StoreError};

/// Counts the events of one page after the stored position. `None`: there is no such webhook.
pub(super) fn count(store: &Store, id: WebhookId) -> BatchResult<Option<Backlog>> {
    let statement = Statement::new(format!(
        "-- position_of_webhook\n select {DUE_COLUMNS} from webhooks where webhooks.id = ?"
    ));
    let rows: Vec<DueRow> = store.pools.read()?.load(&statement.long(id.0))?;
    let Some(row) = rows.into_iter().next() else { return Ok(None) };
    let webhook = row.read(store.now().as_micros())?;
    let page =
        |cursor| store.events(&EventPosition::After(cursor), &webhook.filter, Backlog::MAX_COUNTED);
    let read = match page(webhook.cursor.clone())? {
        Err(EventReadError::Gone { oldest }) => page(oldest)?,
        read => read,
    };
    let page = read.map_err(StoreError::corrupt)?;
    let count = u64::try_from(page.events.len()).unwrap_or(u64::MAX);
    Ok(Some(Backlog { count, more: page.more }))
}
