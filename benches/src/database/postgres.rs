use std::{io, time::Duration};

use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl,
    connection::SimpleConnection,
    sql_query,
    sql_types::{BigInt, Double, Text},
};
use grid_batch_test_postgres::{PostgresServer, TestDatabase};

use super::{DatabaseUsage, Statement};
use crate::proc_stats::{cpu_time, cpu_time_of_children};

/// Counts the statements of all connections, those of functions too.
const OPTIONS: [&str; 2] =
    ["-cshared_preload_libraries=pg_stat_statements", "-cpg_stat_statements.track_utility=on"];

/// How the statements of this program start.
const OWN: &str = "-- bench";

/// A PostgreSQL server with one database.
pub struct Postgres {
    // The database is dropped before its server.
    database: TestDatabase,
    server: PostgresServer,
    connection: PgConnection,
    own_commits: u64,
}

#[derive(QueryableByName)]
struct Counts {
    #[diesel(sql_type = BigInt)]
    commits: i64,
    #[diesel(sql_type = BigInt)]
    statements: i64,
    #[diesel(sql_type = BigInt)]
    rows: i64,
    #[diesel(sql_type = BigInt)]
    log_bytes: i64,
}

#[derive(QueryableByName)]
struct StatementRow {
    #[diesel(sql_type = Text)]
    query: String,
    #[diesel(sql_type = BigInt)]
    calls: i64,
    #[diesel(sql_type = BigInt)]
    rows: i64,
    #[diesel(sql_type = Double)]
    milliseconds: f64,
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

impl Postgres {
    pub(super) fn start() -> Self {
        let server = PostgresServer::start_durable_with(&OPTIONS);
        let mut connection = PgConnection::establish(server.url()).unwrap();
        connection.batch_execute("create extension pg_stat_statements").unwrap();
        let database = TestDatabase::create_on(&server);
        let connection = PgConnection::establish(database.url()).unwrap();
        Self { database, server, connection, own_commits: 0 }
    }

    pub(super) fn url(&self) -> &str {
        self.database.url()
    }

    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    pub(super) fn usage(&mut self) -> DatabaseUsage {
        self.own_commits += 1;
        let counts: Counts = sql_query(format!(
            "{OWN}\n select \
             (select xact_commit from pg_stat_database where datname = current_database()) as commits, \
             (select coalesce(sum(calls), 0)::bigint from public.pg_stat_statements \
              where query not like '{OWN}%') as statements, \
             (select coalesce(sum(rows), 0)::bigint from public.pg_stat_statements \
              where query not like '{OWN}%') as rows, \
             (pg_current_wal_lsn() - '0/0')::bigint as log_bytes"
        ))
        .get_result(&mut self.connection)
        .unwrap();
        let unsigned = |number: i64| u64::try_from(number).unwrap_or_default();
        DatabaseUsage {
            cpu: Some(self.cpu()),
            commits: unsigned(counts.commits).saturating_sub(self.own_commits),
            statements: Some(unsigned(counts.statements)),
            rows: Some(unsigned(counts.rows)),
            log_bytes: unsigned(counts.log_bytes),
        }
    }

    fn cpu(&self) -> Duration {
        let postmaster = self.server.process_id().unwrap();
        cpu_time(postmaster) + cpu_time_of_children(postmaster)
    }

    pub(super) fn open_batches(&mut self) -> io::Result<i64> {
        self.own_commits += 1;
        let query =
            format!("{OWN}\n select count(*) as number from batches where ended_at is null");
        let row: Number =
            sql_query(query).get_result(&mut self.connection).map_err(io::Error::other)?;
        Ok(row.number)
    }

    pub(super) fn reset_statements(&mut self) {
        self.own_commits += 1;
        let query = format!("{OWN}\n select public.pg_stat_statements_reset()");
        self.connection.batch_execute(&query).unwrap();
    }

    pub(super) fn statements(&mut self) -> Vec<Statement> {
        let query = format!(
            "{OWN}\n select query, calls, rows, total_exec_time as milliseconds \
             from public.pg_stat_statements where query not like '{OWN}%' \
             order by total_exec_time desc"
        );
        let rows: Vec<StatementRow> = sql_query(query).load(&mut self.connection).unwrap();
        let statement = |row: StatementRow| Statement {
            text: row.query,
            calls: row.calls,
            rows: row.rows,
            milliseconds: row.milliseconds,
        };
        rows.into_iter().map(statement).collect()
    }
}
