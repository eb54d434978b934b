//! A server that a test stops and starts again.

use diesel::{RunQueryDsl, connection::SimpleConnection};
use grid_batch_test_postgres::{RestartablePostgres, StopMode};

#[test]
fn committed_rows_survive_each_kind_of_stop() {
    let postgres = RestartablePostgres::start(5);
    postgres.connect().unwrap().batch_execute("create table t (id int)").unwrap();
    for (expected, mode) in [(1, StopMode::Fast), (2, StopMode::Immediate)] {
        postgres.connect().unwrap().batch_execute("insert into t values (1)").unwrap();
        postgres.stop(mode);
        assert!(postgres.connect().is_err());
        postgres.start_again();
        let select = diesel::sql_query("select from t");
        assert_eq!(select.execute(&mut postgres.connect().unwrap()).unwrap(), expected);
    }
}

#[test]
fn refused_connections_are_accepted_again() {
    let postgres = RestartablePostgres::start(1);
    let mut connection = postgres.connect().unwrap();
    assert!(postgres.connect().is_err(), "more connections than the limit");
    postgres.refuse_connections();
    assert!(connection.batch_execute("select 1").is_err());
    assert!(postgres.connect().is_err());
    postgres.accept_connections();
    assert!(postgres.connect().is_ok());
}
