//! Batches that the ledger had committed before they were stored.

use std::collections::BTreeSet;

use diesel::prelude::*;
use grid_batch_core::batches::{Change, Decision, Event, NewBatch};

use super::{AttemptLog, end_waiting, lock_lanes, record_locked};
use crate::sql::{Connection, Store, StoreError, schema::batches};

/// The note of a batch that is committed but was never sent.
const COMMITTED_BEFORE: &str =
    "the ledger has applied all of its transactions before, with a batch that is not stored";

/// Ends new batches as committed, without sending them. Their services are locked.
pub(crate) fn end_past_batches(
    store: &Store,
    connection: &mut Connection,
    batches: &[&NewBatch],
) -> Result<(), StoreError> {
    for batch in batches {
        let key = (batch.service_id.clone(), batch.batch_id);
        let event = Event::Decided { attempt: 0, decision: Decision::Committed };
        let change = Change {
            error: Some(COMMITTED_BEFORE.to_owned()),
            ..Change::new(key.0.clone(), key.1, event)
        };
        let (scheduler, now) = (&store.scheduler, store.now());
        if !lock_lanes(connection, &BTreeSet::from([key]))?.is_empty() {
            record_locked(connection, scheduler, &[change], AttemptLog::default(), now)?;
        } else if let Some(seq) = find_seq(connection, batch)? {
            end_waiting(connection, scheduler, seq, &change, now)?;
        }
    }
    Ok(())
}

fn find_seq(connection: &mut Connection, batch: &NewBatch) -> Result<Option<i64>, StoreError> {
    let query = batches::table
        .filter(batches::batch_id.eq(batch.batch_id.as_bytes().to_vec()))
        .filter(batches::service_id.eq(batch.service_id.as_str()))
        .select(batches::seq);
    let found: Vec<i64> = connection.load_query("seq_of_past_batch", query)?;
    Ok(found.first().copied())
}
