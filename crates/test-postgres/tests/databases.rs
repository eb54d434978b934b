//! What a test may rely on when it asks for a database.
#![expect(clippy::unwrap_used, reason = "a test fails where it panics")]

use diesel::{
    Connection, PgConnection, RunQueryDsl, connection::SimpleConnection, dsl::sql, select,
    sql_types::Text,
};
use grid_batch_test_postgres::{Tally, TestDatabase, TestServer};

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
fn databases_made_at_the_same_time_are_different() {
    let server = TestServer::start();
    let tally = Tally::begin(&server);
    let make = || TestDatabase::create_on(&server).url().to_owned();
    let mut urls = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
        let urls = makers.into_iter().map(|maker| maker.join().unwrap());
        urls.collect::<Vec<_>>()
    });
    urls.sort();
    urls.dedup();
    assert_eq!(urls.len(), 8);
    assert_eq!(tally.databases_and_tests().0, 8);
}

#[test]
fn a_dropped_database_is_gone() {
    let database = TestDatabase::create();
    let url = database.url().to_owned();
    connect(&url).batch_execute("create table t ()").unwrap();
    drop(database);
    assert!(connect(&url).batch_execute("select from t").is_err());
}

#[test]
fn a_database_dropped_after_its_server_does_no_harm() {
    let server = TestServer::start();
    let database = TestDatabase::create_on(&server);
    drop(server);
    drop(database);
}

#[test]
fn only_a_durable_server_waits_for_the_disk() {
    for (server, expected) in [(TestServer::start(), "off"), (TestServer::durable(), "on")] {
        for name in ["fsync", "full_page_writes", "synchronous_commit"] {
            assert_eq!(setting(server.url(), name), expected, "{name}");
        }
    }
}
