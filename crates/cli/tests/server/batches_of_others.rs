//! Batches that other batches or other clients have a part in, and databases that went back in time.

use std::fs;

use diesel::{
    Connection, PgConnection, RunQueryDsl, SqliteConnection, connection::SimpleConnection,
    dsl::sql, select, sql_types::BigInt,
};
use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::{ExecutionResult, Fault, When};
use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_test_postgres::PostgresServer;
use grid_batch_test_support::{
    batches::{
        SignedBatch, batch_ids, batch_of_transactions, encode_batch_list, signed_batch,
        signed_batches,
    },
    http::{request, send},
    wait::wait_until,
};

use crate::harness::{BatchHarness, count_in_state};

#[test]
fn batch_with_a_transaction_of_another_is_refused() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let first = batch_of_transactions(&harness.services[0], &[1]);
    server.submit(std::slice::from_ref(&first));
    harness.wait_until_all_committed(std::slice::from_ref(&first));

    let second = batch_of_transactions(&harness.services[0], &[1, 2]);
    harness.ledger.inject(Fault::ResetBefore, When::Always);
    let response = server.post(&[second]).unwrap();
    assert_eq!((response.status, &response.json()["error"]["code"]), (409, &1014.into()));
    assert!(response.body.contains(&first.batch_id.to_string()), "{}", response.body);
    server.stop();
}

/// Sends a batch to the ledger as another client does.
fn send_past_the_server(harness: &BatchHarness, batch: SignedBatch) {
    let (circuit, service) = harness.services[0].split_once("::").unwrap();
    let path = format!("/scabbard/{circuit}/{service}/batches");
    let token = CylinderToken::new(&SigningKey::from_seed(9));
    let authorization = format!("authorization: Bearer Cylinder:{}", token.as_str());
    let body = encode_batch_list(&[batch]);
    let request = request("POST", &path, &[&authorization], &body);
    assert_eq!(send(harness.ledger.address(), &request).unwrap().status, 202);
}

/// How many transactions of other clients the server has stored.
fn count_past_transactions(harness: &BatchHarness) -> i64 {
    let file = harness.database_file();
    let mut connection = SqliteConnection::establish(file.to_str().unwrap()).unwrap();
    select(sql::<BigInt>("(select count(*) from past_transactions)"))
        .get_result(&mut connection)
        .unwrap()
}

#[test]
fn commit_of_one_transaction_does_not_prove_two() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let first = signed_batch(&harness.services[0], 0);
    server.submit(std::slice::from_ref(&first));
    harness.wait_until_all_committed(&[first]);

    send_past_the_server(&harness, batch_of_transactions(&harness.services[0], &[1]));
    wait_until("the other client's batch is applied", || harness.ledger.record().len() == 2);
    wait_until("its event has arrived", || count_past_transactions(&harness) == 1);
    let both = batch_of_transactions(&harness.services[0], &[1, 2]);
    let response = server.post(&[both]).unwrap();
    assert_eq!((response.status, &response.json()["error"]["code"]), (409, &1032.into()));
    assert_eq!(harness.ledger.record().len(), 2);
    server.stop();
}

/// Stores batches that stay open, because the ledger takes none.
fn store_open_batches(harness: &BatchHarness) -> Vec<SignedBatch> {
    harness.ledger.inject(Fault::Busy, When::Always);
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 8);
    server.submit(&batches);
    server.stop();
    harness.ledger.heal();
    batches
}

fn assert_each_applied_once(harness: &BatchHarness, batches: &[SignedBatch]) {
    let store = harness.store();
    wait_until("all batches are committed again", || {
        count_in_state(&store, BatchState::Committed) == batches.len()
    });
    let audit = harness.ledger.audit(&batch_ids(batches));
    assert!(audit.is_clean() && audit.applied == batches.len(), "{audit}");
    let executions = harness.ledger.record().len();
    assert_eq!(executions, batches.len(), "{:?}", harness.ledger.record());
    assert!(harness.ledger.record().iter().all(|entry| entry.result == ExecutionResult::Applied));
}

/// Commits batches, brings an earlier copy of the database back, and starts again.
fn restore_behind_a_restart(harness: &BatchHarness) {
    let batches = store_open_batches(harness);
    let copy = harness.path().join("copy.db");
    fs::copy(harness.database_file(), &copy).unwrap();
    let server = harness.serve();
    harness.wait_until_all_committed(&batches);
    server.stop();

    fs::copy(&copy, harness.database_file()).unwrap();
    let server = harness.serve();
    assert_each_applied_once(harness, &batches);
    server.stop();
}

#[test]
fn restored_database_repeats_nothing_on_scabbard() {
    restore_behind_a_restart(&BatchHarness::scabbard(2));
}

#[test]
fn restored_database_repeats_nothing_on_sawtooth() {
    restore_behind_a_restart(&BatchHarness::sawtooth());
}

/// A database on a shared server, and a copy of it that can take its place.
struct CopiedDatabase {
    connection: PgConnection,
    name: String,
}

impl CopiedDatabase {
    fn create_on(server: &PostgresServer) -> (Self, String) {
        let url = server.url();
        let name = format!("copied_{}", std::process::id());
        let separator = if url.contains('?') { '&' } else { '?' };
        let database_url = format!("{url}{separator}dbname={name}");
        let mut database = Self { connection: PgConnection::establish(url).unwrap(), name };
        database.execute("create database $");
        (database, database_url)
    }

    /// Copies the database. No server may use it.
    fn copy(&mut self) {
        self.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = '$'");
        self.execute("create database $_copy template $");
    }

    /// Puts the copy in the place of the database, while servers use it.
    fn restore(&mut self) {
        self.execute("alter database $ allow_connections false");
        self.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = '$'");
        self.execute("alter database $ rename to $_old");
        self.execute("alter database $_copy rename to $");
    }

    /// Executes a statement in which `$` stands for the database's name.
    fn execute(&mut self, sql: &str) {
        self.connection.batch_execute(&sql.replace('$', &self.name)).unwrap();
    }
}

impl Drop for CopiedDatabase {
    fn drop(&mut self) {
        for suffix in ["", "_old", "_copy"] {
            self.execute(&format!("drop database if exists ${suffix} with (force)"));
        }
    }
}

#[test]
fn running_server_over_a_restored_database_repeats_nothing() {
    let postgres = PostgresServer::from_env_or_start();
    let (mut database, url) = CopiedDatabase::create_on(&postgres);
    let harness = BatchHarness::scabbard(2).with_database(&url);
    let batches = store_open_batches(&harness);
    database.copy();
    let server = harness.serve();
    harness.wait_until_all_committed(&batches);
    database.restore();
    assert_each_applied_once(&harness, &batches);
    server.stop();
}
