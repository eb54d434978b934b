use crate::sql::{Connection, Rows, Statement, StoreError};

/// Services are not new any more: a batch of each has ended.
pub(super) fn forget_new_services<'a>(
    connection: &mut Connection,
    services: impl IntoIterator<Item = &'a str>,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- forget_new_services
         delete from new_services where service_id in (select x.service_id from {x})",
    )
    .rows(Rows::default().text("service_id", services));
    connection.execute(&statement).map(drop)
}
