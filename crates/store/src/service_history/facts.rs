use diesel::{
    QueryableByName,
    prelude::*,
    sql_types::{BigInt, Binary, Bool, Nullable},
};
use grid_batch_core::{HistoryFacts, ItemId, ServiceId};

use crate::sql::{
    Connection, Dialect, Statement, Store, StoreError, rows::batch_id as header_id,
    schema::service_histories,
};

pub(crate) fn read_history(
    store: &Store,
    service_id: &ServiceId,
    batch_id: &ItemId,
) -> Result<HistoryFacts, StoreError> {
    let statement = read_history_statement(store.dialect(), service_id, batch_id);
    let rows: Vec<FactsRow> = store.pools.read()?.load(&statement)?;
    let Some(row) = rows.into_iter().next() else { return Ok(HistoryFacts::default()) };
    Ok(HistoryFacts {
        is_known: row.is_known,
        anchor: row.anchor.as_deref().map(header_id).transpose()?,
        is_new: row.declared > 0 || row.tried > 0,
    })
}

/// `tried`: a node may have accepted an earlier attempt, so the batch was proved to be new before that. Attempts in
/// `not_accepted` certainly were not accepted.
///
/// Retention may have removed the last committed batch if it was not sent.
fn read_history_statement<'a>(
    dialect: Dialect,
    service_id: &'a ServiceId,
    batch_id: &'a ItemId,
) -> Statement<'a> {
    Statement::new(
        dialect,
        "-- read_history
         select (select h.is_known from service_histories h where h.service_id = ?) as is_known,
             (select a.batch_id from lanes l
              left join batches last on last.seq = l.last_committed_seq
              join batches a on a.service_id = l.service_id
                  and a.created_at <= coalesce(last.created_at, 9223372036854775807)
              where l.service_id = ? and l.lane = 0 and l.last_committed_seq is not null
                  and a.dlt_status = 'COMMITTED' and a.attempts > 0
              order by a.created_at desc limit 1 offset 1) as anchor,
             (select count(*) from batches b join declared_new_batches d on d.batch_seq = b.seq
              where b.batch_id = ? and b.service_id = ?) as declared,
             (select count(*) from lanes l
              where l.service_id = ? and l.batch_id = ? and l.attempts - l.not_accepted > 1) as tried",
    )
    .text(service_id.as_str())
    .text(service_id.as_str())
    .bytes(batch_id.as_bytes())
    .text(service_id.as_str())
    .text(service_id.as_str())
    .bytes(batch_id.as_bytes())
}

pub(crate) fn is_history_known(
    store: &Store,
    service_id: &ServiceId,
) -> Result<Option<bool>, StoreError> {
    let query =
        service_histories::table.find(service_id.as_str()).select(service_histories::is_known);
    let rows: Vec<Option<bool>> = store.pools.read()?.load_query("is_history_known", query)?;
    Ok(rows.into_iter().flatten().next())
}

pub(crate) fn set_history_known(
    store: &Store,
    service_id: &ServiceId,
    is_known: bool,
) -> Result<(), StoreError> {
    let statement = store
        .statement(format!(
            "-- set_history_known
             insert into service_histories (service_id, is_known) values (?, {is_known})
             on conflict (service_id) do update set is_known = {is_known}"
        ))
        .text(service_id.as_str());
    store.pools.write()?.execute(&statement).map(drop)
}

/// The database went back, so nothing is known of the histories of its services any more. Part of a transaction.
pub(crate) fn forget_histories(connection: &mut Connection) -> Result<(), StoreError> {
    let sql = "-- forget_histories
         update service_histories set is_known = null where is_known";
    connection.execute(&Statement::new(connection.dialect(), sql)).map(drop)
}

#[derive(QueryableByName)]
struct FactsRow {
    #[diesel(sql_type = Nullable<Bool>)]
    is_known: Option<bool>,
    #[diesel(sql_type = Nullable<Binary>)]
    anchor: Option<Vec<u8>>,
    #[diesel(sql_type = BigInt)]
    declared: i64,
    #[diesel(sql_type = BigInt)]
    tried: i64,
}
