use std::sync::OnceLock;

use diesel::connection::SimpleConnection;

use crate::{PostgresServer, server_url::ServerUrl, usage_counter};

/// An empty database for one test: a schema that no other test sees.
///
/// Dropping the value drops the schema. The schema stays if a connection still holds a lock on one
/// of its tables.
#[derive(Debug)]
pub struct TestDatabase {
    server: ServerUrl,
    schema: String,
    url: String,
}

impl TestDatabase {
    /// A database on the server that `GRID_BATCH_TEST_DATABASE_URL` names. If the variable is not
    /// set, on a server that this process starts for all its tests.
    ///
    /// Panics if no server can be started; the message says what to install.
    pub fn create() -> Self {
        // Never dropped: the server ends with the process.
        static SERVER: OnceLock<PostgresServer> = OnceLock::new();
        Self::create_on(SERVER.get_or_init(PostgresServer::from_env_or_start))
    }

    /// A database on this server.
    pub fn create_on(server: &PostgresServer) -> Self {
        let server = server.server_url().clone();
        let mut connection = server.connect();
        let schema = format!("test_{}", usage_counter::record_database(&mut connection));
        connection
            .batch_execute(&format!("create schema {schema}"))
            .unwrap_or_else(|error| panic!("cannot create a schema on {server}: {error}"));
        let url = server.with_schema(&schema);
        Self { server, schema, url }
    }

    /// A URL for libpq, whose connections see this database's tables and no others.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Ok(mut connection) = self.server.try_connect() else {
            return;
        };
        let schema = &self.schema;
        let _ = connection
            .batch_execute(&format!("set lock_timeout = '5s'; drop schema {schema} cascade"));
    }
}
