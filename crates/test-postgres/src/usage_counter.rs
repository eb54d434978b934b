use std::{env, path::Path, thread};

use diesel::{
    connection::SimpleConnection,
    dsl::{count, count_star, max},
    prelude::*,
};

use crate::{PostgresServer, server_url::ServerUrl};

diesel::table! {
    /// One row for each database that was created for a test. Rows stay when the database is dropped.
    public.grid_batch_test_runs (id) {
        /// The number in the name of the database's schema.
        id -> BigInt,
        /// The name of the test, if it is known.
        test -> Text,
    }
}
use grid_batch_test_runs::dsl;

/// Counts the databases that tests create on a server.
#[derive(Debug)]
pub struct UsageCounter {
    server: ServerUrl,
    /// The newest row when counting started.
    last_id: i64,
}

impl UsageCounter {
    /// Starts to count.
    pub fn start(server: &PostgresServer) -> Self {
        let server = server.server_url().clone();
        let mut connection = server.connect();
        create_table(&mut connection);
        let last_id: Option<i64> = dsl::grid_batch_test_runs
            .select(max(dsl::id))
            .get_result(&mut connection)
            .unwrap_or_else(|error| panic!("cannot read grid_batch_test_runs: {error}"));
        Self { server, last_id: last_id.unwrap_or_default() }
    }

    /// How many databases have been created since counting started, and for how many different tests.
    pub fn databases_and_tests(&self) -> (i64, i64) {
        dsl::grid_batch_test_runs
            .filter(dsl::id.gt(self.last_id))
            .select((count_star(), count(dsl::test).aggregate_distinct()))
            .get_result(&mut self.server.connect())
            .unwrap_or_else(|error| panic!("cannot read grid_batch_test_runs: {error}"))
    }
}

/// Records that a database is created for the current test. Returns a unique number for its name.
pub(crate) fn record_database(connection: &mut PgConnection) -> i64 {
    create_table(connection);
    diesel::insert_into(dsl::grid_batch_test_runs)
        .values(dsl::test.eq(current_test()))
        .returning(dsl::id)
        .get_result(connection)
        .unwrap_or_else(|error| panic!("cannot write grid_batch_test_runs: {error}"))
}

/// Takes a lock, because `if not exists` alone fails when two connections create the table at once.
fn create_table(connection: &mut PgConnection) {
    connection
        .batch_execute(
            "begin; \
             select pg_advisory_xact_lock(hashtext('grid_batch_test_runs')); \
             create table if not exists public.grid_batch_test_runs ( \
                 id bigint generated always as identity primary key, \
                 test text not null, \
                 made_at timestamptz not null default now()); \
             commit",
        )
        .unwrap_or_else(|error| panic!("cannot create grid_batch_test_runs: {error}"));
}

/// Test runners name a test's thread after the test.
fn current_test() -> String {
    let program = env::current_exe().unwrap_or_default();
    let program = program.file_stem().map(Path::new).unwrap_or(Path::new("?"));
    let thread = thread::current();
    format!("{}::{}", program.display(), thread.name().unwrap_or("?"))
}
