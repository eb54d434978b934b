//! How much is read: index entries and rows on PostgreSQL, and pages on SQLite.

use std::{fs, thread};

use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl,
    connection::SimpleConnection,
    sql_query,
    sql_types::{BigInt, Text},
};

use crate::fixture::Database;

/// How much this work reads, which opens and drops its own store.
pub fn count(db: &Database, work: impl FnOnce()) -> u64 {
    let (before, others) = (reads_so_far(db), sessions(db));
    work();
    // PostgreSQL updates the counts when a session ends.
    while sessions(db) > others {
        thread::yield_now();
    }
    reads_so_far(db) - before
}

/// Keeps the dead rows of the work that is counted as long as the value exists, so that later work reads them too.
/// Otherwise other tests decide this: while they have a snapshot, dead rows are kept.
pub fn keep_dead_rows(db: &Database) -> Option<PgConnection> {
    db.is_postgres().then(|| {
        let mut session = PgConnection::establish(&db.postgres_url()).unwrap();
        let begin = "begin isolation level repeatable read; select count(*) from services";
        session.batch_execute(begin).unwrap();
        session
    })
}

/// Removes the dead rows of earlier work. It waits while another test has a snapshot. Without `index_cleanup`, a few
/// would be left.
pub fn remove_dead_rows(db: &Database) {
    while db.is_postgres() {
        for_each_table(db, "vacuum (analyze, index_cleanup on)");
        if tables(db).iter().all(|table| table.dead == 0) {
            return;
        }
    }
}

/// Gathers statistics. Without them, each further batch takes longer.
pub fn analyze(db: &Database) {
    if db.is_postgres() {
        for_each_table(db, "analyze");
    }
}

fn for_each_table(db: &Database, command: &str) {
    let names: Vec<String> = tables(db).into_iter().map(|table| table.name).collect();
    db.execute(&format!("{command} {}", names.join(", "))).unwrap();
}

/// The tables of this test. Others are in other schemas.
fn tables(db: &Database) -> Vec<Table> {
    let mut session = PgConnection::establish(&db.postgres_url()).unwrap();
    let tables = "select relname::text as name, n_dead_tup as dead from pg_stat_user_tables
         where schemaname = current_schema";
    sql_query(tables).load(&mut session).unwrap()
}

#[derive(QueryableByName)]
struct Table {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = BigInt)]
    dead: i64,
}

fn reads_so_far(db: &Database) -> u64 {
    if db.is_postgres() {
        let count = db.number(
            "select ((select sum(seq_tup_read) from pg_stat_user_tables
                      where schemaname = current_schema)
                 + (select sum(idx_tup_read) from pg_stat_user_indexes
                      where schemaname = current_schema))::bigint as number",
        );
        return count.unsigned_abs();
    }
    let counts = fs::read_to_string("/proc/thread-self/io").expect("the counts of this thread");
    let read = counts.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.and_then(|count| count.parse::<u64>().ok()).expect("bytes read") / 4096
}

/// How many sessions of this test the server has.
fn sessions(db: &Database) -> i64 {
    if !db.is_postgres() {
        return 0;
    }
    db.number(
        "select count(*) as number from pg_stat_activity
         where application_name = current_setting('application_name') and pid <> pg_backend_pid()",
    )
}
