//! The messages that were given up.

use grid_batch_core::webhooks::{FailedDelivery, FailedDeliveryId, WebhookId};

use super::rows::{FAILED_COLUMNS, FailedDeliveryRow};
use crate::sql::{Connection, Statement, Store, StoreError, rows::limit};

/// Up to `count` messages after `after`. `None`: there is no such webhook.
pub(super) fn list(
    store: &Store,
    id: WebhookId,
    after: Option<FailedDeliveryId>,
    count: usize,
) -> Result<Option<Vec<FailedDelivery>>, StoreError> {
    let mut connection = store.pools.read()?;
    if !exists(&mut connection, id)? {
        return Ok(None);
    }
    let statement = Statement::new(format!(
        "-- failed_deliveries
         select {FAILED_COLUMNS} from failed_deliveries f
         where f.webhook_id = ? and f.id > ?
         order by f.webhook_id, f.id limit ?"
    ))
    .long(id.0)
    .long(after.map_or(0, |after| after.0))
    .long(limit(count));
    read(&mut connection, &statement).map(Some)
}

/// Up to `count` messages that are to be sent once more.
pub(super) fn again(
    store: &Store,
    id: WebhookId,
    count: usize,
) -> Result<Vec<FailedDelivery>, StoreError> {
    let statement = Statement::new(format!(
        "-- failed_deliveries_again
         select {FAILED_COLUMNS} from failed_deliveries f
         where f.webhook_id = ? and f.again order by f.webhook_id, f.id limit ?"
    ))
    .long(id.0)
    .long(limit(count));
    read(&mut *store.pools.read()?, &statement)
}

fn read(
    connection: &mut Connection,
    statement: &Statement<'_>,
) -> Result<Vec<FailedDelivery>, StoreError> {
    let rows: Vec<FailedDeliveryRow> = connection.load(statement)?;
    Ok(rows.into_iter().map(FailedDeliveryRow::read).collect())
}

pub(super) fn exists(connection: &mut Connection, id: WebhookId) -> Result<bool, StoreError> {
    let statement =
        Statement::new("-- webhook_exists\n select w.id from webhooks w where w.id = ?").long(id.0);
    Ok(!connection.load_column::<i64>(&statement)?.is_empty())
}
