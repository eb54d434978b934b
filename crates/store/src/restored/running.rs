use diesel::{QueryableByName, sql_types::Text};
use grid_batch_core::InstanceId;

use crate::sql::{Connection, Statement, StoreError, error::ClaimError};

/// Fails if the lease of an instance lasts. Part of a transaction.
pub(crate) fn expect_no_running_instances(connection: &mut Connection) -> Result<(), StoreError> {
    let dialect = connection.dialect();
    let clock = dialect.clock();
    let statement = Statement::new(
        dialect,
        format!(
            "-- find_running_instances
             select i.instance_id from instances i where i.expiry_1 > {clock}
             order by i.instance_id"
        ),
    );
    let rows: Vec<InstanceRow> = connection.load(&statement)?;
    if rows.is_empty() {
        return Ok(());
    }
    let instances = rows.into_iter().map(|row| InstanceId::new(row.instance_id)).collect();
    Err(ClaimError::InstancesRunning { instances }.into())
}

#[derive(QueryableByName)]
struct InstanceRow {
    #[diesel(sql_type = Text)]
    instance_id: String,
}
