use std::{env, path::Path, thread};

use diesel::{
    connection::SimpleConnection,
    dsl::{count, count_star, max},
    prelude::*,
};

use crate::{TestServer, server_url::ServerUrl};

diesel::table! {
    /// One row for each database that a test was given, kept when the database is dropped.
    public.grid_batch_test_runs (id) {
        /// Names the database's schema.
        id -> BigInt,
        /// The test, as well as it can be known.
        test -> Text,
    }
}
use grid_batch_test_runs::dsl;

/// Counts what tests use a server for, from now on.
#[derive(Debug)]
pub struct Tally {
    server: ServerUrl,
    last: i64,
}

impl Tally {
    /// Begins to count.
    pub fn begin(server: &TestServer) -> Self {
        let server = server.location().clone();
        let mut connection = server.connect();
        create_table(&mut connection);
        let last: Option<i64> = dsl::grid_batch_test_runs
            .select(max(dsl::id))
            .get_result(&mut connection)
            .unwrap_or_else(|error| panic!("cannot read the tally: {error}"));
        let last = last.unwrap_or_default();
        Self { server, last }
    }

    /// How many databases were made since, and for how many different tests.
    pub fn databases_and_tests(&self) -> (i64, i64) {
        dsl::grid_batch_test_runs
            .filter(dsl::id.gt(self.last))
            .select((count_star(), count(dsl::test).aggregate_distinct()))
            .get_result(&mut self.server.connect())
            .unwrap_or_else(|error| panic!("cannot read the tally: {error}"))
    }
}

/// Notes that the current test is given a database, and returns a number that no other has.
pub(crate) fn record(connection: &mut PgConnection) -> i64 {
    create_table(connection);
    diesel::insert_into(dsl::grid_batch_test_runs)
        .values(dsl::test.eq(current_test()))
        .returning(dsl::id)
        .get_result(connection)
        .unwrap_or_else(|error| panic!("cannot write the tally: {error}"))
}

/// The lock is there because `if not exists` alone fails when two create the table at once.
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
        .unwrap_or_else(|error| panic!("cannot create the table of the tally: {error}"));
}

/// The test runner names a test's thread after the test.
fn current_test() -> String {
    let program = env::current_exe().unwrap_or_default();
    let program = program.file_stem().map(Path::new).unwrap_or(Path::new("?"));
    let thread = thread::current();
    format!("{}::{}", program.display(), thread.name().unwrap_or("?"))
}
