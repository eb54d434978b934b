//! Test databases are separate, and are dropped.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use diesel::{
    Connection, PgConnection, RunQueryDsl, connection::SimpleConnection, dsl::sql, select,
    sql_types::Text,
};
use grid_batch_test_postgres::{PostgresServer, TestDatabase, UsageCounter};

fn connect(url: &str) -> PgConnection {
    PgConnection::establish(url).unwrap()
}

fn setting(url: &str, name: &str) -> String {
    let expression = sql::<Text>(&format!("current_setting('{name}')"));
    select(expression).get_result(&mut connect(url)).unwrap()
}

#[test]
fn databases_do_not_see_each_others_tables() {
    let databases = [TestDatabase::create(), TestDatabase::create()];
    for database in &databases {
        connect(database.url())
            .batch_execute("create table t (id int); insert into t values (1)")
            .unwrap();
    }
}

#[test]
fn concurrently_created_databases_are_different() {
    let server = PostgresServer::start();
    let usage = UsageCounter::start(&server);
    let create = || TestDatabase::create_on(&server).url().to_owned();
    let mut urls = std::thread::scope(|scope| {
        let creators: Vec<_> = (0..8).map(|_| scope.spawn(create)).collect();
        let urls = creators.into_iter().map(|creator| creator.join().unwrap());
        urls.collect::<Vec<_>>()
    });
    urls.sort();
    urls.dedup();
    assert_eq!(urls.len(), 8);
    assert_eq!(usage.databases_and_tests().0, 8);
}

#[test]
fn dropped_value_drops_the_database() {
    let database = TestDatabase::create();
    let url = database.url().to_owned();
    connect(&url).batch_execute("create table t ()").unwrap();
    drop(database);
    assert!(connect(&url).batch_execute("select from t").is_err());
}

#[test]
fn database_can_be_dropped_after_its_server() {
    let server = PostgresServer::start();
    let database = TestDatabase::create_on(&server);
    drop(server);
    drop(database);
}

#[test]
fn only_a_durable_server_waits_for_the_disk() {
    for (server, expected) in
        [(PostgresServer::start(), "off"), (PostgresServer::start_durable(), "on")]
    {
        for name in ["fsync", "full_page_writes", "synchronous_commit"] {
            assert_eq!(setting(server.url(), name), expected, "{name}");
        }
    }
}
