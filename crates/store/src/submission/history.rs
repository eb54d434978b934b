use diesel::{alias, prelude::*};
use grid_batch_core::{DltStatus, HeaderId, ServiceId};

use crate::sql::{Store, StoreError, rows::batch_id as header_id, schema::batches};

alias!(batches as later: Later);

/// The last committed batch of a service that was stored before this one.
pub(crate) fn committed_before(
    store: &Store,
    service_id: &ServiceId,
    batch_id: &HeaderId,
) -> Result<Option<HeaderId>, StoreError> {
    let stored_at = later
        .filter(later.field(batches::service_id).eq(service_id.as_str()))
        .filter(later.field(batches::batch_id).eq(&batch_id.as_bytes()[..]))
        .select(later.field(batches::created_at));
    let query = batches::table
        .filter(batches::service_id.eq(service_id.as_str()))
        .filter(batches::dlt_status.eq(DltStatus::Committed.as_str()))
        .filter(batches::created_at.nullable().lt(stored_at.single_value()))
        .order_by((batches::service_id.desc(), batches::created_at.desc()))
        .limit(1)
        .select(batches::batch_id);
    let found: Vec<Vec<u8>> = store.pools.read()?.load_query("committed_before", query)?;
    found.first().map(|id| header_id(id)).transpose()
}
