use diesel::{
    QueryableByName,
    sql_types::{Binary, Text},
};
use grid_batch_core::{HeaderId, ServiceId};

use crate::sql::{
    Dialect, Statement, Store, StoreError,
    rows::{batch_id, claimed_by, service_id, service_rows},
};

/// The batches that follow the heads of these services, of those that the instance claims.
pub(crate) fn next_batches(
    store: &Store,
    instance: &str,
    services: &[ServiceId],
) -> Result<Vec<(ServiceId, HeaderId)>, StoreError> {
    let statement = next_batches_statement(store.dialect(), instance, services);
    let rows: Vec<NextRow> = store.pools.read()?.load(&statement)?;
    rows.iter().map(|row| Ok((service_id(&row.service_id)?, batch_id(&row.batch_id)?))).collect()
}

/// Selects as `install_next_heads` does when the head ends.
fn next_batches_statement<'a>(
    dialect: Dialect,
    instance: &'a str,
    services: &'a [ServiceId],
) -> Statement<'a> {
    let claimed = claimed_by("s");
    Statement::new(
        dialect,
        format!(
            "-- next_batches
             select b.service_id, b.batch_id
             from {{x}} join lanes s on s.service_id = x.service_id
             join batches b on b.seq = (
                 select n.seq from batches n
                 where n.service_id = s.service_id
                     and n.created_at > s.created_at and n.ended_at is null
                 order by n.service_id, n.created_at limit 1)
             where s.busy and {claimed}"
        ),
    )
    .rows(service_rows(services))
    .text(/* claimant */ instance)
}

#[derive(QueryableByName)]
struct NextRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = Binary)]
    batch_id: Vec<u8>,
}
