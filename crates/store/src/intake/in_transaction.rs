//! Adding batches in a transaction of the program, together with rows of its own.

use std::collections::BTreeSet;

use grid_batch_core::BatchResult;
use grid_batch_core::batches::{AddOutcome, BatchConflict, NewBatch};

use super::add::add_lists;
use crate::sql::{
    Connection, Rows, Statement, Store, StoreError, program_connection::ProgramConnection,
};

impl Store {
    /// Stores a list of batches, whole or not at all, in the transaction that the program has begun on this connection.
    /// Nothing is sent before the program commits, and a rollback leaves nothing.
    ///
    /// Until the transaction ends, it keeps rows of the batches' services locked, so it should be short. After a conflict
    /// nothing is stored and the transaction can go on. After an error the program must roll it back.
    ///
    /// On PostgreSQL, the commit wakes the instances that own the services. On SQLite, begin with
    /// `immediate_transaction`, as for every transaction that writes. Its batches are found by the next scan of the
    /// queue, or as soon as the program reports them, as with `RunningServer::stored` of grid-batch-service.
    ///
    /// ```no_run
    /// # use diesel::{Connection, RunQueryDsl, pg::PgConnection, result::Error, sql_query};
    /// # use grid_batch_core::batches::NewBatch;
    /// # use grid_batch_store::Store;
    /// fn place_order(store: &Store, connection: &mut PgConnection, batch: NewBatch) -> Result<(), Error> {
    ///     connection.transaction(|connection| {
    ///         sql_query("insert into orders (state) values ('placed')").execute(connection)?;
    ///         let stored = store.add_in_transaction(connection, &[batch]);
    ///         let stored = stored.map_err(|error| Error::QueryBuilderError(error.into()))?;
    ///         stored.map_err(|conflict| Error::QueryBuilderError(conflict.into()))?;
    ///         Ok(())
    ///     })
    /// }
    /// ```
    pub fn add_in_transaction<'c>(
        &self,
        connection: impl Into<ProgramConnection<'c>>,
        batches: &[NewBatch],
    ) -> BatchResult<Result<Vec<AddOutcome>, BatchConflict>> {
        if batches.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let mut connection = connection.into().for_store(self)?;
        Ok(self.add_on(&mut connection, batches)?)
    }

    fn add_on(
        &self,
        connection: &mut Connection<'_>,
        batches: &[NewBatch],
    ) -> Result<Result<Vec<AddOutcome>, BatchConflict>, StoreError> {
        let added = add_lists(self, connection, &[batches])?.into_iter().next();
        let added = added.ok_or_else(|| StoreError::corrupt("no outcome of a list of batches"))?;
        if added.as_ref().is_ok_and(|outcomes| outcomes.contains(&AddOutcome::Stored)) {
            self.notify_at_commit(connection, batches)?;
        }
        Ok(added)
    }

    /// Notifies the instances that own the services of these batches when the transaction commits.
    fn notify_at_commit(
        &self,
        connection: &mut Connection<'_>,
        batches: &[NewBatch],
    ) -> Result<(), StoreError> {
        if !self.dialect().locks_rows() {
            return Ok(());
        }
        let services: BTreeSet<&str> = batches.iter().map(|it| it.service_id.as_str()).collect();
        let channel = self.notification_channel();
        let statement = Statement::new(
            "-- notify_owners_at_commit
             select pg_notify(?, c.claimant || chr(10) || c.service_id)
             from {x} join service_id_claims c on c.service_id = x.service_id
             where c.claimant is not null",
        );
        let rows = Rows::default().text("service_id", services);
        connection.execute(&statement.text(&channel).rows(rows)).map(drop)
    }
}
