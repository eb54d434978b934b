//! Batches that a program leaves in the database in transactions of its own, with the statements of docs/schema.md.

use std::{fs, path::Path, process};

use diesel::{
    Connection, PgConnection, SqliteConnection,
    connection::SimpleConnection,
    result::{Error, QueryResult},
};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::batches::{SignedBatch, encode_batch_list, signed_batches};

use crate::harness::{BatchHarness, count_all};

/// The statement for this database, with these values.
fn leave(database: &str, service_id: &str, list: &[u8]) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema.md");
    let text = fs::read_to_string(file).unwrap();
    let (_, rest) = text.split_once(&format!("-- {database}\n")).unwrap();
    let hex: String = list.iter().map(|byte| format!("{byte:02x}")).collect();
    let bytes =
        if database == "SQLite" { format!("x'{hex}'") } else { format!("'\\x{hex}'::bytea") };
    let statement = rest.lines().next().unwrap();
    assert!(statement.contains(":service_id, :list, :label"), "{statement}");
    let statement = statement.replace(":service_id, :list", &format!("'{service_id}', {bytes}"));
    statement.replace(":label", "'order 1'")
}

/// Leaves a list together with an order in one transaction, which is rolled back if `commits` is false.
fn order<C: Connection>(
    connection: &mut C,
    database: &str,
    batches: &[SignedBatch],
    commits: bool,
) {
    let list = leave(database, &batches[0].service_id.to_string(), &encode_batch_list(batches));
    let ended: QueryResult<()> = connection.transaction(|connection| {
        connection.batch_execute("insert into orders default values")?;
        connection.batch_execute(&list)?;
        if commits { Ok(()) } else { Err(Error::RollbackTransaction) }
    });
    assert_eq!(ended.is_ok(), commits, "{ended:?}");
}

/// A program with these rights, whose order was rolled back, whose second order was committed, and which leaves a list
/// that is refused.
fn run<C: Connection>(harness: &BatchHarness, program: &mut C, database: &str, rights: &str) {
    let server = harness.serve();
    program.batch_execute(rights).unwrap();
    let batches = signed_batches(&harness.services, 3);
    order(program, database, &batches[..1], false);
    order(program, database, &batches[1..], true);
    harness.wait_until_all_committed(&batches[1..]);
    let store = harness.store();
    assert_eq!(count_all(&store), 2);
    for batch in &batches[1..] {
        let details = store.details(&batch.service_id, &batch.batch_id).unwrap().unwrap();
        assert_eq!(details.label, Some("order 1".parse().unwrap()));
    }
    program.batch_execute(&leave(database, &harness.services[0], b"rubbish")).unwrap();
    server.process.wait_for_log("a list in the table intake_lists is refused");
    server.stop();
}

#[test]
fn program_leaves_batches_in_its_transaction_on_postgresql() {
    let database = TestDatabase::create();
    let harness = BatchHarness::sawtooth().with_database(database.url());
    let mut program = PgConnection::establish(database.url()).unwrap();
    program.batch_execute("create table orders (id serial primary key)").unwrap();
    let role = format!("program_{}", process::id());
    let rights = format!(
        "create role {role};
         do $$ begin
             execute format('grant usage on schema %I to {role}', current_schema());
         end $$;
         grant all on orders, orders_id_seq to {role};
         grant select, insert on intake_lists to {role};
         set role {role}"
    );
    run(&harness, &mut program, "PostgreSQL", &rights);
    program.batch_execute(&format!("reset role; drop owned by {role}; drop role {role}")).unwrap();
}

#[test]
fn program_leaves_batches_in_its_transaction_on_sqlite() {
    let harness = BatchHarness::sawtooth();
    let file = harness.database_file();
    let mut program = SqliteConnection::establish(file.to_str().unwrap()).unwrap();
    program.batch_execute("pragma busy_timeout = 10000; pragma journal_mode = wal").unwrap();
    program.batch_execute("create table orders (id integer primary key)").unwrap();
    run(&harness, &mut program, "SQLite", "");
}
