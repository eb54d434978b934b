use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable, Text},
};
use grid_batch_core::{BatchEvent, ItemId, ServiceId};

use super::rows::{EVENT_COLUMNS, EventRow};
use crate::sql::{Connection, Statement, Store, StoreError};

/// The events of a batch in order; `None`: it is not stored.
pub(crate) fn history(
    store: &Store,
    service_id: &ServiceId,
    batch_id: &ItemId,
) -> Result<Option<Vec<BatchEvent>>, StoreError> {
    let mut connection = store.pools.read()?;
    let Some(seq) = find_seq(&mut connection, service_id, batch_id)? else { return Ok(None) };
    let statement = store
        .statement(format!(
            "-- batch_history
             select {EVENT_COLUMNS},
                 (select g.instance from event_groups g where g.seq = e.group_seq) as instance
             from batch_events e
             join batches b on b.seq = e.batch_seq
             where e.batch_seq = ?
             order by e.batch_seq, e.group_seq, e.position"
        ))
        .long(seq);
    let rows: Vec<HistoryRow> = connection.load(&statement)?;
    rows.into_iter()
        .map(|row| row.event.into_event(row.instance, None))
        .collect::<Result<_, _>>()
        .map(Some)
}

fn find_seq(
    connection: &mut Connection,
    service_id: &ServiceId,
    batch_id: &ItemId,
) -> Result<Option<i64>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- find_batch_seq
         select b.seq from batches b where b.batch_id = ? and b.service_id = ?",
    )
    .bytes(batch_id.as_bytes())
    .text(service_id.as_str());
    let rows: Vec<SeqRow> = connection.load(&statement)?;
    Ok(rows.first().map(|row| row.seq))
}

#[derive(QueryableByName)]
struct SeqRow {
    #[diesel(sql_type = BigInt)]
    seq: i64,
}

#[derive(QueryableByName)]
struct HistoryRow {
    #[diesel(embed)]
    event: EventRow,
    #[diesel(sql_type = Nullable<Text>)]
    instance: Option<String>,
}
