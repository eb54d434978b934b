use std::sync::Arc;

use grid_batch_core::claims::InstanceId;
use grid_batch_core::operators::{ActionEffect, OperatorRequest, OperatorTarget, OperatorVerb};

use super::{
    mark::{OpenBatchesInDoubt, mark},
    server::DatabaseServer,
    state::{DatabaseState, record_server},
};
use crate::{
    action_log::{Logged, logged},
    events::begin_generation,
    sql::{
        Connection, Statement, Store, StoreError,
        error::ClaimError,
        file_lock::FileLock,
        last_seen::Seen,
        url::{DatabaseUrl, Kind},
    },
};

impl Store {
    /// Puts every open batch of a database that was restored from a backup in doubt, because each may have been sent in
    /// the time that was lost. No batch that is open now is submitted before there is evidence or an operator's
    /// decision. Batches that are added later are not affected.
    ///
    /// Fails while an instance runs, unless `even_if_running` is set. Repeating it is safe.
    pub fn mark_restored(
        &self,
        even_if_running: bool,
        request: &OperatorRequest,
    ) -> Result<OpenBatchesInDoubt, StoreError> {
        let url = self.pools.url();
        let lock = if even_if_running { None } else { FileLock::acquire(url)? };
        let server = DatabaseServer::read(&mut *self.pools.write()?)?;
        let in_doubt = logged(self, request, OperatorVerb::Restored, None, |connection| {
            let state = DatabaseState::lock(connection, &Seen::default())?;
            if !even_if_running {
                expect_stopped(connection, url)?;
            }
            let (sink, reason) = (self.scheduler.events(), "an operator restored the database");
            let in_doubt = mark(connection, sink, &state, reason, self.now())?;
            if let Some(server) = &server {
                record_server(connection, server)?;
            }
            let OpenBatchesInDoubt { batches, services } = in_doubt;
            let after = format!("{batches} batches of {services} services are in doubt");
            let effect = ActionEffect::in_words("restored", after);
            Ok(Logged::changed(in_doubt, OperatorTarget::Database, effect))
        })?;
        forget_seen(lock, request)?;
        Ok(in_doubt)
    }

    /// Records that a database was moved to another server without any loss, so that no batch is put in doubt when it
    /// is opened. Fails while an instance runs.
    pub fn mark_moved(&self, request: &OperatorRequest) -> Result<(), StoreError> {
        let url = self.pools.url();
        let lock = FileLock::acquire(url)?;
        let server = DatabaseServer::read(&mut *self.pools.write()?)?;
        logged(self, request, OperatorVerb::Moved, None, |connection| {
            DatabaseState::lock(connection, &Seen::default())?;
            expect_stopped(connection, url)?;
            begin_generation(connection, self.now())?;
            if let Some(server) = &server {
                record_server(connection, server)?;
            }
            let effect = ActionEffect::in_words("moved", "nothing was lost");
            Ok(Logged::changed((), OperatorTarget::Database, effect))
        })?;
        forget_seen(lock, request)
    }
}

/// Forgets what is stored beside an SQLite file, because an operator has stated what happened to the database.
fn forget_seen(lock: Option<Arc<FileLock>>, request: &OperatorRequest) -> Result<(), StoreError> {
    lock.filter(|_| !request.dry_run).map_or(Ok(()), |lock| lock.forget())
}

/// Fails while an instance runs. On SQLite, the lock beside the file excludes instances, and leases do not matter.
fn expect_stopped(connection: &mut Connection, url: &DatabaseUrl) -> Result<(), StoreError> {
    match url.kind() {
        #[cfg(feature = "sqlite")]
        Kind::Sqlite(_) => Ok(()),
        #[cfg(feature = "postgres")]
        Kind::Postgres(_) => expect_no_running_instances(connection),
    }
}

/// Fails if an instance has a lease that has not expired. Must be called in a transaction.
pub(crate) fn expect_no_running_instances(connection: &mut Connection) -> Result<(), StoreError> {
    let clock = connection.dialect().clock();
    let statement = Statement::new(format!(
        "-- find_running_instances
         select i.instance_id from instances i where i.expiry_1 > {clock}
         order by i.instance_id"
    ));
    let names: Vec<String> = connection.load_column(&statement)?;
    if names.is_empty() {
        return Ok(());
    }
    let instances = names.into_iter().map(InstanceId::new).collect();
    Err(ClaimError::InstancesRunning { instances }.into())
}
