use std::sync::OnceLock;

use diesel::connection::SimpleConnection;

use crate::{TestServer, server_url::ServerUrl, tally};

/// An empty database of a test's own: a schema that no other test sees.
///
/// It is dropped with the value, as far as that is possible: a connection that still holds a lock
/// on one of its tables keeps it.
#[derive(Debug)]
pub struct TestDatabase {
    server: ServerUrl,
    schema: String,
    url: String,
}

impl TestDatabase {
    /// A database on the server that `GRID_BATCH_TEST_DATABASE_URL` names, else on one that this
    /// process starts for all its tests.
    ///
    /// Panics where there is neither, and says what to install.
    pub fn create() -> Self {
        // Never dropped, which does no harm: the server ends with the process.
        static SERVER: OnceLock<TestServer> = OnceLock::new();
        Self::create_on(SERVER.get_or_init(TestServer::named_or_new))
    }

    /// A database on this server.
    pub fn create_on(server: &TestServer) -> Self {
        let server = server.location().clone();
        let mut connection = server.connect();
        let schema = format!("test_{}", tally::record(&mut connection));
        connection
            .batch_execute(&format!("create schema {schema}"))
            .unwrap_or_else(|error| panic!("cannot create a schema on {server}: {error}"));
        let url = server.within(&schema);
        Self { server, schema, url }
    }

    /// The URL, for libpq, of a connection that sees this database's tables and no others.
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
