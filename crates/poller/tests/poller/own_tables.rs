//! The monitor over a store that an importer writes with Diesel. It has its own table and only the required method,
//! which casts its limit to Diesel's integer type.

use std::sync::{Arc, Mutex};

use diesel::{
    Connection, PgConnection, SqliteConnection, connection::SimpleConnection, prelude::*, result,
};
use grid_batch_core::batches::{LedgerStatus, StatusReport};
use grid_batch_core::polling::{BatchId, BatchUpdater, PendingBatchStore};
use grid_batch_core::{BatchError, BatchResult};
use grid_batch_poller::{MonitorOptions, PollingMonitorBuilder, ShutdownHandle};
use grid_batch_test_postgres::TestDatabase;

use crate::support::*;

const BATCHES: usize = 100_000;
const BATCHES_OF_SERVICE: usize = 100;
const SERVICES: usize = BATCHES / BATCHES_OF_SERVICE;
/// The batches of the first services stay pending, so those after them are found only by reading on.
const STUCK_SERVICES: usize = SERVICES / 2;

diesel::table! {
    payments (number) {
        number -> BigInt,
        account -> Text,
        batch -> Text,
        pending -> Bool,
    }
}

#[derive(Debug, Clone, Queryable)]
struct Payment {
    account: String,
    batch: String,
}

impl BatchId for Payment {
    fn get_id(&self) -> &str {
        &self.batch
    }

    fn get_service_id(&self) -> &str {
        &self.account
    }
}

enum AnyConnection {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

/// Runs the same work on a connection of either database.
macro_rules! on {
    ($store:expr, $connection:ident => $work:expr) => {
        match &mut *$store.connection.lock().unwrap() {
            AnyConnection::Postgres($connection) => $work,
            AnyConnection::Sqlite($connection) => $work,
        }
    };
}

#[derive(Clone)]
struct DieselStore {
    connection: Arc<Mutex<AnyConnection>>,
    /// The limit of each read.
    limits: Arc<Mutex<Vec<usize>>>,
    pending: Arc<WatchedValue<usize>>,
}

impl DieselStore {
    fn with_payments(connection: AnyConnection) -> Self {
        let store = Self {
            connection: Arc::new(Mutex::new(connection)),
            limits: Arc::default(),
            pending: Arc::new(WatchedValue::default()),
        };
        let create = format!(
            "create table payments (
                 number bigint primary key,
                 account text not null,
                 batch text not null unique,
                 pending boolean not null);
             insert into payments (number, account, batch, pending)
             with recursive numbers (n) as (
                 select 0 union all select n + 1 from numbers where n + 1 < {BATCHES})
             select n, 'account-' || (n / {BATCHES_OF_SERVICE}), 'batch-' || n, true from numbers;"
        );
        on!(store, connection => connection.batch_execute(&create)).unwrap();
        store.pending.change(|pending| *pending = BATCHES);
        store
    }
}

fn failed(error: result::Error) -> BatchError {
    BatchError::InternalError(error.to_string())
}

impl PendingBatchStore for DieselStore {
    type Id = Payment;

    fn get_pending_batch_ids(&self, limit: usize) -> BatchResult<Vec<Payment>> {
        self.limits.lock().unwrap().push(limit);
        let query = payments::table
            .filter(payments::pending.eq(true))
            .order(payments::number)
            .select((payments::account, payments::batch))
            .limit(limit as i64);
        on!(self, connection => query.load(connection)).map_err(failed)
    }
}

impl BatchUpdater for DieselStore {
    type Status = StatusReport;

    fn update_batch_statuses(&self, account: &str, reports: &[StatusReport]) -> BatchResult<()> {
        let is_final = |report: &&StatusReport| report.status == LedgerStatus::Committed;
        let ended: Vec<&str> =
            reports.iter().filter(is_final).map(|report| report.batch_id.as_str()).collect();
        let of_account = payments::table
            .filter(payments::account.eq(account))
            .filter(payments::batch.eq_any(ended))
            .filter(payments::pending.eq(true));
        let update = diesel::update(of_account).set(payments::pending.eq(false));
        let updated = on!(self, connection => update.execute(connection)).map_err(failed)?;
        self.pending.change(|pending| *pending -= updated);
        Ok(())
    }
}

/// A ledger that commits all batches except those of the first services.
fn ledger() -> Arc<Ledger> {
    let answer_to = |account: &str, ids: &[String]| {
        let number: usize = account.strip_prefix("account-").unwrap().parse().unwrap();
        let is_stuck = number < STUCK_SERVICES;
        answer(all(ids, if is_stuck { LedgerStatus::Pending } else { LedgerStatus::Committed }))
    };
    Arc::new(Ledger::new(answer_to).with_connections(10))
}

fn polls_all(connection: AnyConnection) {
    let store = DieselStore::with_payments(connection);
    let ledger = ledger();
    let running = PollingMonitorBuilder::new()
        .with_store(store.clone())
        .with_updater(store.clone())
        .with_reader(Arc::<Ledger>::clone(&ledger))
        .with_options(MonitorOptions { longest_interval: HOUR, ..options() })
        .build()
        .unwrap()
        .run()
        .unwrap();
    store.pending.wait_until(|pending| *pending == STUCK_SERVICES * BATCHES_OF_SERVICE);
    until(|| ledger.requests_by_service().len() == SERVICES);
    running.wait_for_shutdown().unwrap();

    let limits = store.limits.lock().unwrap();
    let largest = limits.iter().max().copied().unwrap_or_default();
    assert!((BATCHES..BATCHES * 3).contains(&largest), "a read of up to {largest}");
    // One read serves many requests.
    assert!(limits.len() < SERVICES / 4, "{} reads", limits.len());
}

#[test]
fn diesel_store_with_one_method_is_polled_on_postgres() {
    let database = TestDatabase::create();
    polls_all(AnyConnection::Postgres(PgConnection::establish(database.url()).unwrap()));
}

#[test]
fn diesel_store_with_one_method_is_polled_on_sqlite() {
    polls_all(AnyConnection::Sqlite(SqliteConnection::establish(":memory:").unwrap()));
}
