//! Follows the batches of a table that the program has in its own database, with Diesel: on SQLite, and on the PostgreSQL
//! of `DATABASE_URL`.
//!
//! The store has one method and the updater another. The monitor decides when to ask the ledger, which is part of the
//! program.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, error::Error, future::ready, pin::Pin, thread, time::Duration};

use diesel::{connection::SimpleConnection, prelude::*};
use grid_batch_core::batches::{LedgerStatus, StatusReport};
use grid_batch_core::polling::{BatchId, BatchStatus, BatchUpdater, PendingBatchStore};
use grid_batch_core::{BatchError, BatchResult};
use grid_batch_poller::{BatchStatusReader, MonitorOptions, PollingMonitorBuilder};

const PAYMENTS: &str = "
    create temporary table payments (batch text primary key, account text not null, pending boolean not null);
    insert into payments (batch, account, pending) values
        ('batch-1', 'alice', true), ('batch-2', 'bob', true), ('batch-3', 'alice', true)";

diesel::table! {
    payments (batch) {
        batch -> Text,
        account -> Text,
        pending -> Bool,
    }
}

/// The store names a pending batch by its row.
#[derive(Debug, Clone, Queryable)]
struct Payment {
    batch: String,
    account: String,
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
        match &mut *$store.0.lock().unwrap_or_else(PoisonError::into_inner) {
            AnyConnection::Postgres($connection) => $work,
            AnyConnection::Sqlite($connection) => $work,
        }
    };
}

/// The store. Clones share the connection.
#[derive(Clone)]
struct PaymentStore(Arc<Mutex<AnyConnection>>);

impl PendingBatchStore for PaymentStore {
    type Id = Payment;

    fn get_pending_batch_ids(&self, limit: usize) -> BatchResult<Vec<Payment>> {
        let query = payments::table
            .filter(payments::pending.eq(true))
            .order(payments::batch)
            .select((payments::batch, payments::account))
            .limit(i64::try_from(limit).unwrap_or(i64::MAX));
        on!(self, connection => query.load(connection)).map_err(failed)
    }
}

impl BatchUpdater for PaymentStore {
    type Status = StatusReport;

    fn update_batch_statuses(&self, account: &str, reports: &[StatusReport]) -> BatchResult<()> {
        let ended = reports.iter().filter(|report| report.is_final());
        let ended: Vec<&str> = ended.map(|report| report.batch_id.as_str()).collect();
        let payments = payments::table
            .filter(payments::account.eq(account))
            .filter(payments::batch.eq_any(ended));
        let update = diesel::update(payments).set(payments::pending.eq(false));
        on!(self, connection => update.execute(connection)).map(drop).map_err(failed)
    }
}

fn failed(error: diesel::result::Error) -> BatchError {
    BatchError::InternalError(error.to_string())
}

type Statuses<'a> = Pin<Box<dyn Future<Output = BatchResult<Vec<StatusReport>>> + Send + 'a>>;

/// The adapter: a ledger that reports batches as pending four times, then as committed.
#[derive(Default)]
struct SlowLedger(AtomicUsize);

impl BatchStatusReader for SlowLedger {
    type Status = StatusReport;

    fn get_batch_statuses<'a>(&'a self, _: &'a str, ids: &'a [String]) -> Statuses<'a> {
        let is_pending = self.0.fetch_add(1, Relaxed) < 4;
        let status = if is_pending { LedgerStatus::Pending } else { LedgerStatus::Committed };
        let report = |id: &String| StatusReport { batch_id: id.clone(), status, receipts: vec![] };
        Box::pin(ready(Ok(ids.iter().map(report).collect())))
    }

    fn available_connections(&self) -> usize {
        2
    }
}

fn follow(database: &str, connection: AnyConnection) -> Result<(), Box<dyn Error>> {
    let store = PaymentStore(Arc::new(Mutex::new(connection)));
    on!(store, connection => connection.batch_execute(PAYMENTS))?;
    let poll_interval = Duration::from_millis(50);
    let running = PollingMonitorBuilder::new()
        .with_store(store.clone())
        .with_updater(store.clone())
        .with_reader(Arc::new(SlowLedger::default()))
        .with_options(MonitorOptions { poll_interval, ..MonitorOptions::default() })
        .build()?
        .run()?;
    // An event of the ledger would trigger a poll like this one.
    running.trigger().trigger("alice");
    while !store.get_pending_batch_ids(1)?.is_empty() {
        thread::sleep(Duration::from_millis(10));
    }
    let stats = running.stop()?.counters().read();
    println!("{database}: {} requests, {} statuses written", stats.requests, stats.written);
    assert_eq!((stats.failed, stats.store_failures), (0, 0));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    follow("SQLite", AnyConnection::Sqlite(SqliteConnection::establish(":memory:")?))?;
    let url = env::var("DATABASE_URL").map_err(|error| format!("DATABASE_URL: {error}"))?;
    follow("PostgreSQL", AnyConnection::Postgres(PgConnection::establish(&url)?))
}
