use diesel::prelude::*;
use grid_batch_core::{CommittedBefore, ItemId, ServiceId};

use crate::sql::{
    Store, StoreError,
    rows::batch_id as header_id,
    schema::{batches, lanes},
};

/// The last batch that was committed in each lane of a service, before or after this batch was taken.
///
/// A batch that is in no lane was not taken: then all were committed before.
pub(crate) fn committed_before(
    store: &Store,
    service_id: &ServiceId,
    batch_id: &ItemId,
) -> Result<CommittedBefore, StoreError> {
    let last_committed = lanes::last_committed_seq.eq(batches::seq.nullable());
    let query = lanes::table
        .left_join(batches::table.on(last_committed))
        .filter(lanes::service_id.eq(service_id.as_str()))
        .order_by((lanes::service_id, lanes::lane))
        .select((
            lanes::batch_id,
            lanes::submitted_at,
            batches::batch_id.nullable(),
            batches::ended_at.nullable(),
        ));
    let rows: Vec<LaneRow> = store.pools.read()?.load_query("committed_before", query)?;
    let is_own = |row: &&LaneRow| row.0.as_deref() == Some(batch_id.as_bytes());
    let taken_at = rows.iter().find(is_own).and_then(|row| row.1);
    let mut history = CommittedBefore::default();
    for (_, _, committed, ended_at) in &rows {
        let Some(committed) = committed else { continue };
        let ended_later = taken_at.is_some_and(|taken| ended_at.is_some_and(|end| end > taken));
        match ended_later {
            true => history.since.push(header_id(committed)?),
            false => history.before.push(header_id(committed)?),
        }
    }
    Ok(history)
}

/// Whether a batch of the service was ever committed.
pub(crate) fn has_committed(store: &Store, service_id: &ServiceId) -> Result<bool, StoreError> {
    let query = lanes::table
        .filter(lanes::service_id.eq(service_id.as_str()))
        .filter(lanes::last_committed_seq.is_not_null())
        .select(lanes::lane)
        .limit(1);
    let rows: Vec<i32> = store.pools.read()?.load_query("has_committed", query)?;
    Ok(!rows.is_empty())
}

/// The batch in a lane and when it was taken; the last one that was committed there and when it ended.
type LaneRow = (Option<Vec<u8>>, Option<i64>, Option<Vec<u8>>, Option<i64>);
