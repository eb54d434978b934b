use log::info;

use super::{
    mark::{OpenBatchesInDoubt, mark},
    running::expect_no_running_instances,
    server::DatabaseServer,
    state::{DatabaseState, record_server},
};
use crate::{
    events::begin_generation,
    sql::{
        Connection, RulesOf, Store, StoreError,
        handle::StoreOptions,
        last_seen::Seen,
        url::{DatabaseUrl, Kind},
    },
};

/// Puts every open batch in doubt, because an operator says that the database was restored.
pub(crate) fn mark_restored(
    url: &DatabaseUrl,
    options: StoreOptions,
    even_if_running: bool,
) -> Result<OpenBatchesInDoubt, StoreError> {
    let store = Store::connect(url, options, RulesOf::Options)?;
    let mut connection = store.pools.write()?;
    let server = DatabaseServer::read(&mut connection)?;
    connection.write_transaction(|connection| {
        let state = DatabaseState::lock(connection, &Seen::default())?;
        if !even_if_running {
            expect_stopped(connection, url)?;
        }
        let in_doubt = mark(
            connection,
            store.scheduler.events(),
            &state,
            "an operator restored the database",
            store.now(),
        )?;
        if let Some(server) = &server {
            record_server(connection, server)?;
        }
        Ok(in_doubt)
    })
}

/// Records the server that the database is on now, because an operator says that nothing was lost.
pub(crate) fn mark_moved(url: &DatabaseUrl, options: StoreOptions) -> Result<(), StoreError> {
    let store = Store::connect(url, options, RulesOf::Options)?;
    let mut connection = store.pools.write()?;
    let server = DatabaseServer::read(&mut connection)?;
    connection.write_transaction(|connection| {
        DatabaseState::lock(connection, &Seen::default())?;
        expect_stopped(connection, url)?;
        begin_generation(connection, store.now())?;
        match &server {
            Some(server) => record_server(connection, server),
            None => Ok(()),
        }
    })?;
    info!("recorded that the database was moved without a loss");
    Ok(())
}

/// On SQLite the lock beside the file excludes instances, and leases do not matter.
fn expect_stopped(connection: &mut Connection, url: &DatabaseUrl) -> Result<(), StoreError> {
    match url.kind() {
        #[cfg(feature = "sqlite")]
        Kind::Sqlite(_) => Ok(()),
        #[cfg(feature = "postgres")]
        Kind::Postgres(_) => expect_no_running_instances(connection),
    }
}
